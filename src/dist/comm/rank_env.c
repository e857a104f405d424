/* SPDX-License-Identifier: Apache-2.0 */
/* rank_env.c: see rank_env.h. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dist/comm/rank_env.h"

enum { DEFAULT_TIMEOUT = 300 }; /* seconds: RELIABILITY.md section 4 */

/* ---- launchers ---- */

/* What each says, in which words, and what a job of it is called: at most three
 * variables that all ranks of one have, and no other has. */
static const struct launcher {
    const char *name;
    const char *rank, *world, *local_rank, *local_world;
    const char *only; /* others set these variables, too: they count only if this one is
                         set; NULL: always */
    const char *job[3];
} launchers[] = {
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     NULL,
     {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "MASTER_PORT"}},
    {"mpirun",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     "PMIX_NAMESPACE",
     {"PMIX_NAMESPACE", "HOSTNAME", NULL}},
    /* (A batch script has SLURM_PROCID, too, and is one process, whatever was asked
     * for: the tasks of a step are counted.) */
    {"srun",
     "SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     "SLURM_LOCALID",
     "SLURM_STEP_TASKS_PER_NODE",
     "SLURM_STEP_ID",
     {"SLURM_JOB_ID", "SLURM_STEP_ID", NULL}},
};

static const char *
variable(const char *name)
{
    const char *text = name ? getenv(name) : NULL;
    return text && text[0] ? text : NULL;
}

static const struct launcher *
find_launcher(void)
{
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const struct launcher *l = &launchers[i];
        const char *world = variable(l->world);
        if (!variable(l->rank) || !variable(l->local_rank) ||
            (l->only && !variable(l->only)))
            continue;
        /* A single task of mpirun or srun may launch ranks itself. */
        if (i > 0 && (!world || strtol(world, NULL, 10) < 2))
            continue;
        return l;
    }
    return NULL;
}

const char *
etd_rank_env_launcher(void)
{
    const struct launcher *l = find_launcher();
    return l ? l->name : NULL;
}

/* "" where the ranks meet at MASTER_PORT. */
static void
name_job(const struct launcher *l, char out[ETD_RENDEZVOUS_JOB])
{
    const char *agent = variable("TORCHELASTIC_USE_AGENT_STORE");
    bool has_port = l == launchers && !(agent && strcasecmp(agent, "true") == 0);
    size_t n = (size_t)snprintf(out, ETD_RENDEZVOUS_JOB, "%s", has_port ? "" : l->name);
    for (int i = 0; i < 3 && !has_port && n < ETD_RENDEZVOUS_JOB; i++) {
        const char *part = variable(l->job[i]);
        n +=
            (size_t)snprintf(out + n, ETD_RENDEZVOUS_JOB - n, " %s", part ? part : "-");
    }
}

/* ---- its variables ---- */

/* The number in variable NAME, OTHERWISE where it is not set. */
static et_status
read_number(struct et_ctx *cx, const char *name, long least, long most, long otherwise,
            int *out)
{
    const char *text = getenv(name);
    char *end;
    *out = (int)otherwise;
    if (!text || !text[0])
        return ET_OK;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || value < least || value > most)
        return ET_FAIL(cx, ET_EINVAL,
                       "%s is '%s' in the environment: a number from %ld "
                       "to %ld is expected",
                       name, text, least, most);
    *out = (int)value;
    return ET_OK;
}

/* Slurm's is "2(x3)", or "2,1", where there are several machines. */
static et_status
read_local_world(struct et_ctx *cx, const struct launcher *l, struct etd_rank_env *p)
{
    const char *text = variable(l->local_world);
    size_t n = text ? strspn(text, "0123456789") : 0;
    if (n == 0 || !strchr("(,", text[n]) || !text[n])
        return read_number(cx, l->local_world, 1, ETD_STORE_RANKS, p->world,
                           &p->local_world);
    p->local_world = (int)strtol(text, NULL, 10);
    return ET_OK;
}

static int
digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

static et_status
read_secret(struct et_ctx *cx, struct etd_rank_env *p)
{
    const char *text = getenv("ETUDE_RANK_SECRET");
    if (!text || !text[0])
        return ET_OK;
    bool good = strlen(text) == 2 * sizeof p->secret;
    for (size_t i = 0; i < sizeof p->secret && good; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        good = high >= 0 && low >= 0;
        p->secret[i] = (uint8_t)(high << 4 | low);
    }
    return good ? ET_OK
                : ET_FAIL(cx, ET_EINVAL,
                          "ETUDE_RANK_SECRET is not %zu hexadecimal digits",
                          2 * sizeof p->secret);
}

/* A descriptor may have become something else since it was named. */
static et_status
read_listener(struct et_ctx *cx, struct etd_rank_env *p)
{
    int on = 0;
    socklen_t n = sizeof on;
    ET_TRY(read_number(cx, "ETUDE_RANK_LISTENER", 0, INT_MAX, -1, &p->listener));
    if (p->rank != 0)
        p->listener = -1;
    if (p->listener >= 0 &&
        (getsockopt(p->listener, SOL_SOCKET, SO_ACCEPTCONN, &on, &n) != 0 || !on))
        return ET_FAIL(cx, ET_EINVAL,
                       "ETUDE_RANK_LISTENER is %d in the environment, and that is no "
                       "socket that listens",
                       p->listener);
    return ET_OK;
}

static bool
is_loopback(const char *host)
{
    struct in_addr a;
    return strcasecmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
           (inet_pton(AF_INET, host, &a) == 1 && ntohl(a.s_addr) >> 24 == 127);
}

/* The name that the machine gives itself, with or without its domain. */
static bool
is_own_name(const char *host)
{
    char own[256] = "";
    (void)gethostname(own, sizeof own - 1);
    size_t n = strcspn(own, "."), m = strcspn(host, ".");
    return strcasecmp(host, own) == 0 ||
           (n == m && strncasecmp(host, own, n) == 0 && (!own[n] || !host[m]));
}

static bool
is_same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
    const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
    if (!a || !b || a->sa_family != b->sa_family)
        return false;
    return a->sa_family == AF_INET
               ? a4->sin_addr.s_addr == b4->sin_addr.s_addr
               : a->sa_family == AF_INET6 &&
                     memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr) == 0;
}

/* Every address of HOST is one of an interface of this machine. */
static bool
has_own_address(const char *host)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    struct ifaddrs *own = NULL;
    bool here = getaddrinfo(host, NULL, &hints, &list) == 0 && getifaddrs(&own) == 0;
    for (const struct addrinfo *a = list; a && here; a = a->ai_next) {
        here = false;
        for (const struct ifaddrs *i = own; i && !here; i = i->ifa_next)
            here = is_same_address(a->ai_addr, i->ifa_addr);
    }
    if (list)
        freeaddrinfo(list);
    if (own)
        freeifaddrs(own);
    return here;
}

const char *
etd_rank_env_on_loopback(const char *host)
{
    return is_loopback(host)                            ? host
           : is_own_name(host) || has_own_address(host) ? "127.0.0.1"
                                                        : NULL;
}

static et_status
check(struct et_ctx *cx, const struct etd_rank_env *p)
{
    if (p->rank >= p->world)
        return ET_FAIL(cx, ET_EINVAL,
                       "RANK is %d and WORLD_SIZE %d: ranks count from 0", p->rank,
                       p->world);
    if (p->local_rank >= p->local_world)
        return ET_FAIL(cx, ET_EINVAL,
                       "LOCAL_RANK is %d and LOCAL_WORLD_SIZE %d: ranks count from 0",
                       p->local_rank, p->local_world);
    if (p->local_world != p->world)
        return ET_FAIL(
            cx, ET_ENOTSUP,
            "%d of %d ranks are on this machine: a run's ranks are all on one",
            p->local_world, p->world);
    if (p->world > 1 && !p->job[0] && p->port == 0)
        return ET_FAIL(cx, ET_EINVAL, "MASTER_PORT is not set, and there are %d ranks",
                       p->world);
    return ET_OK;
}

/* All ranks are here: nobody else can come by a loopback address. (A launcher names the
 * machine as others see it. It is looked up once: the next answer may be another.) */
static et_status
settle_host(struct et_ctx *cx, struct etd_rank_env *p)
{
    const char *loopback = etd_rank_env_on_loopback(p->host);
    if (!loopback)
        return ET_FAIL(
            cx, ET_ENOTSUP,
            "MASTER_ADDR is %s, which is not this machine: the ranks of a run are all "
            "on one",
            p->host);
    memmove(p->host, loopback, strlen(loopback) + 1);
    return ET_OK;
}

et_status
etd_rank_env_read(struct et_ctx *cx, struct etd_rank_env *p)
{
    const char *host = variable("MASTER_ADDR");
    const struct launcher *l = find_launcher();
    int timeout;
    *p = (struct etd_rank_env){.world = 1, .local_world = 1, .listener = -1};
    ET_TRY(read_number(cx, "ETUDE_RANK_TIMEOUT", 1, INT_MAX / 1000, DEFAULT_TIMEOUT,
                       &timeout));
    p->timeout_ms = 1000 * timeout;
    p->is_rank = l != NULL;
    if (!p->is_rank)
        return ET_OK;
    p->launcher = l->name;
    name_job(l, p->job);
    ET_TRY(read_number(cx, l->rank, 0, ETD_STORE_RANKS - 1, 0, &p->rank));
    ET_TRY(read_number(cx, l->world, 1, ETD_STORE_RANKS, 1, &p->world));
    ET_TRY(read_number(cx, l->local_rank, 0, ETD_STORE_RANKS - 1, 0, &p->local_rank));
    ET_TRY(read_local_world(cx, l, p));
    if (!p->job[0])
        ET_TRY(read_number(cx, "MASTER_PORT", 1, 65535, 0, &p->port));
    ET_TRY(read_secret(cx, p));
    ET_TRY(read_listener(cx, p));
    snprintf(p->host, sizeof p->host, "%s", host && !p->job[0] ? host : "127.0.0.1");
    ET_TRY(check(cx, p));
    return p->world > 1 ? settle_host(cx, p) : ET_OK;
}

bool
etd_comm_possible(void)
{
#ifdef ET_GLOO
    return true;
#else
    return false;
#endif
}

#ifdef ET_GLOO

static et_status
open_gloo(const struct etd_rank_env *p, struct etd_rendezvous *m, void **self,
          char *why, size_t size)
{
    struct etd_store_config config = {
        .host = p->host,
        .port = p->job[0] ? m->port : p->port,
        .listener = p->job[0] ? m->listener : p->listener,
        .rank = p->rank,
        .world = p->world,
        .timeout_ms = p->timeout_ms,
    };
    struct etd_store *store;
    memcpy(config.secret, p->job[0] ? m->secret : p->secret, sizeof config.secret);
    m->listener = -1; /* the store's */
    ET_TRY(etd_store_open(&config, &store, why, size));
    et_status status = etd_gloo_new(p, store, self, why, size);
    if (status != ET_OK)
        etd_store_close(&store, 0);
    return status;
}

et_status
etd_comm_open(struct et_ctx *cx, const struct etd_rank_env *env, struct et_comm **out)
{
    char why[512] = "";
    void *self;
    *out = NULL;
    if (env->world == 1)
        return ET_OK;
    struct etd_rendezvous m = {.listener = -1, .lock = -1};
    if (env->job[0])
        ET_TRY(env->rank == 0
                   ? etd_rendezvous_begin(cx, env->job, env->host, env->secret, &m)
                   : etd_rendezvous_find(cx, env->job, env->timeout_ms, &m));
    et_status status = open_gloo(env, &m, &self, why, sizeof why);
    etd_rendezvous_end(&m);
    if (status != ET_OK)
        return ET_FAIL(cx, status, "%s", why);
    status = et_comm_new(cx, &etd_gloo, self, env->rank, env->world, out);
    if (status != ET_OK)
        etd_gloo.close(self, true);
    return status;
}

#else

et_status
etd_comm_open(struct et_ctx *cx, const struct etd_rank_env *env, struct et_comm **out)
{
    *out = NULL;
    if (env->world == 1)
        return ET_OK;
    return ET_FAIL(cx, ET_ENOTSUP,
                   "%d ranks: this program was built without Gloo, and trains with one",
                   env->world);
}

#endif
