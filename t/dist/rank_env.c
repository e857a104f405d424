/* SPDX-License-Identifier: Apache-2.0 */
/* Who has started a rank, which secrets are taken, and which names are this machine:
 * MASTER_ADDR is one of them, as the ranks of a run are all on one. What the machine is
 * called, which addresses it has and what other names stand for is the test's: see the
 * functions of the C library below. */
#include "config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dist/comm/rank_env.h"
#include "t/tap.h"

static const char *own; /* name */

/* ---- in place of the C library's ---- */

int
gethostname(char *name, size_t size)
{
    snprintf(name, size, "%s", own);
    return 0;
}

enum { MOST = 3 };

/* Addresses as text, in PLACE. */
static struct sockaddr *
address(const char *text, struct sockaddr_storage *place)
{
    struct sockaddr_in *a = (void *)place;
    struct sockaddr_in6 *b = (void *)place;
    memset(place, 0, sizeof *place);
    if (inet_pton(AF_INET, text, &a->sin_addr) == 1)
        a->sin_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &b->sin6_addr) == 1)
        b->sin6_family = AF_INET6;
    else
        bail("%s is no address", text);
    return (struct sockaddr *)place;
}

static const struct name {
    const char *name, *address[MOST];
} names[] = {
    {"alias", {"192.0.2.7"}},
    {"alias6", {"2001:db8::7"}},
    {"both", {"192.0.2.7", "2001:db8::7"}},
    {"near", {"192.0.2.8"}},
    {"near6", {"2001:db8::8"}},
    {"first", {"192.0.2.7", "192.0.2.8"}},
    {"last", {"192.0.2.8", "192.0.2.7"}},
};

int
getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
            struct addrinfo **out)
{
    static struct sockaddr_storage place[MOST];
    static struct addrinfo list[MOST];
    (void)service, (void)hints;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i].name, host) != 0)
            continue;
        for (int k = 0; k < MOST && names[i].address[k]; k++) {
            struct sockaddr *a = address(names[i].address[k], &place[k]);
            list[k] = (struct addrinfo){.ai_family = a->sa_family, .ai_addr = a};
            if (k > 0)
                list[k - 1].ai_next = &list[k];
        }
        *out = list;
        return 0;
    }
    return EAI_NONAME;
}

void
freeaddrinfo(struct addrinfo *list)
{
    (void)list;
}

int
getifaddrs(struct ifaddrs **out)
{
    static struct sockaddr_storage place[MOST];
    static struct ifaddrs list[MOST + 1];
    static const char *const text[MOST] = {"127.0.0.1", "192.0.2.7", "2001:db8::7"};
    for (int i = 0; i < MOST; i++)
        list[i] = (struct ifaddrs){.ifa_next = &list[i + 1],
                                   .ifa_addr = address(text[i], &place[i])};
    list[MOST] = (struct ifaddrs){0}; /* one that has no address */
    *out = list;
    return 0;
}

void
freeifaddrs(struct ifaddrs *list)
{
    (void)list;
}

/* ---- the machine ---- */

static const struct {
    const char *own, *host;
    bool is_here;
} table[] = {
    {"node1.a.org", "node1.a.org", true},
    {"node1.a.org", "NODE1.A.ORG", true},
    {"node1.a.org", "node1", true},
    {"node1", "node1", true},
    {"Node1", "node1.a.org", true},
    {"node1.a.org", "node1.b.org", false},
    {"node1.a.org", "node1.a", false},
    {"node1.a", "node1.a.org", false},
    {"node1.a.org", "node2.a.org", false},
    {"node1.a.org", "node11", false},
    {"node11.a.org", "node1", false},
    {"node1", "node11.a.org", false},
    {"node1", "node", false},
    {"node1", "node2", false},
    {"node1", "alias", true},
    {"node1", "alias6", true},
    {"node1", "both", true},
    {"node1", "near", false},
    {"node1", "near6", false},
    {"node1", "first", false},
    {"node1", "last", false},
    {"node1", "126.255.255.255", false},
    {"node1", "128.0.0.1", false},
    {"node1", "127.0.0.1.a.org", false},
    {"node1", "localhost.a.org", false},
};

/* ---- who has started it ---- */

/* As launchers set them. */
static const char *const variables[] = {
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MASTER_PORT",
    "MASTER_ADDR",
    "TORCHELASTIC_USE_AGENT_STORE",
    "TORCHELASTIC_RUN_ID",
    "TORCHELASTIC_RESTART_COUNT",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PMIX_NAMESPACE",
    "HOSTNAME",
    "SLURM_PROCID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_LOCALID",
    "SLURM_STEP_TASKS_PER_NODE",
    "SLURM_STEP_ID",
    "SLURM_JOB_ID",
    "ETUDE_RANK_SECRET",
};

/* TEXT: "NAME=VALUE NAME=VALUE"; all others are not set. */
static void
set_variables(const char *text)
{
    char all[512], *rest = NULL;
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        unsetenv(variables[i]);
    snprintf(all, sizeof all, "%s", text);
    for (char *one = strtok_r(all, " ", &rest); one; one = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(one, '=');
        *value++ = '\0';
        setenv(one, value, 1);
    }
}

#define TORCHRUN "RANK=1 WORLD_SIZE=3 LOCAL_RANK=1 MASTER_PORT=29500 "
#define MPIRUN                                                                         \
    "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_LOCAL_RANK=1 "                             \
    "OMPI_COMM_WORLD_LOCAL_SIZE=3 "
#define SRUN "SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_JOB_ID=77 "

static void
test_launchers(struct et_ctx *cx)
{
    static const struct {
        const char *set, *launcher, *job; /* launcher NULL: it is no rank */
        et_status status;
    } row[] = {
        {"", NULL, "", ET_OK},
        {TORCHRUN, "torchrun", "", ET_OK},
        {TORCHRUN "TORCHELASTIC_USE_AGENT_STORE=False", "torchrun", "", ET_OK},
        {TORCHRUN "TORCHELASTIC_USE_AGENT_STORE=True TORCHELASTIC_RUN_ID=r "
                  "TORCHELASTIC_RESTART_COUNT=2",
         "torchrun", "torchrun r 2 29500", ET_OK},
        {TORCHRUN "TORCHELASTIC_USE_AGENT_STORE=true", "torchrun", "torchrun - - 29500",
         ET_OK},
        {"RANK=1 WORLD_SIZE=3 MASTER_PORT=29500", NULL, "", ET_OK},
        {"WORLD_SIZE=3 LOCAL_RANK=1 MASTER_PORT=29500", NULL, "", ET_OK},
        {MPIRUN "OMPI_COMM_WORLD_SIZE=3 PMIX_NAMESPACE=ns HOSTNAME=n1", "mpirun",
         "mpirun ns n1 -", ET_OK},
        {MPIRUN "OMPI_COMM_WORLD_SIZE=3 HOSTNAME=n1", NULL, "", ET_OK},
        {MPIRUN "OMPI_COMM_WORLD_SIZE=1 PMIX_NAMESPACE=ns", NULL, "", ET_OK},
        {MPIRUN "PMIX_NAMESPACE=ns", NULL, "", ET_OK},
        {SRUN "SLURM_STEP_NUM_TASKS=3 SLURM_STEP_ID=0 SLURM_STEP_TASKS_PER_NODE=3",
         "srun", "srun 77 0 -", ET_OK},
        {SRUN "SLURM_STEP_NUM_TASKS=3 SLURM_STEP_ID=0 SLURM_STEP_TASKS_PER_NODE=3(x1)",
         "srun", "srun 77 0 -", ET_OK},
        {SRUN "SLURM_STEP_NUM_TASKS=3 SLURM_STEP_ID=0 SLURM_STEP_TASKS_PER_NODE=2,1",
         "srun", "srun 77 0 -", ET_ENOTSUP},
        {SRUN "SLURM_STEP_NUM_TASKS=3 SLURM_STEP_ID=0", "srun", "srun 77 0 -", ET_OK},
        {SRUN "SLURM_STEP_NUM_TASKS=3", NULL, "", ET_OK},
        {SRUN "SLURM_STEP_NUM_TASKS=1 SLURM_STEP_ID=0", NULL, "", ET_OK},
        {TORCHRUN SRUN "SLURM_STEP_NUM_TASKS=2 SLURM_STEP_ID=0", "torchrun", "", ET_OK},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct etd_rank_env p;
        set_variables(row[i].set);
        const char *launcher = etd_rank_env_launcher();
        is_str(launcher ? launcher : "nobody",
               row[i].launcher ? row[i].launcher : "nobody", "'%s' is of %s",
               row[i].set, row[i].launcher ? row[i].launcher : "nobody");
        is_int(etd_rank_env_read(cx, &p), row[i].status, "which is %s",
               row[i].status == ET_OK ? "right" : "more than one machine");
        et_error_clear(cx);
        is_str(p.job, row[i].job, "ranks of it meet by '%s'", row[i].job);
        const int third = row[i].launcher != NULL;
        ok(p.is_rank == third && p.rank == third && p.local_rank == third &&
               p.world == (third ? 3 : 1) &&
               p.local_world == (row[i].status != ET_OK ? 2
                                 : third                ? 3
                                                        : 1) &&
               p.port == (third && !p.job[0] ? 29500 : 0),
           "(rank %d of %d, %d of %d here)", p.rank, p.world, p.local_rank,
           p.local_world);
    }
}

/* Variables with which no rank can begin, and the sentence for each. */
static void
test_refusals(struct et_ctx *cx)
{
    static const struct {
        const char *set, *message; /* NULL: it can */
    } row[] = {
        {"RANK=0 WORLD_SIZE=1 LOCAL_RANK=0", NULL},
        {"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_PORT=29500", NULL},
        {"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1",
         "MASTER_PORT is not set, and there are 2 ranks"},
        {"RANK=2 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_PORT=29500",
         "RANK is 2 and WORLD_SIZE 2: ranks count from 0"},
        {"RANK=1 WORLD_SIZE=2 LOCAL_RANK=2 MASTER_PORT=29500",
         "LOCAL_RANK is 2 and LOCAL_WORLD_SIZE 2: ranks count from 0"},
        {"RANK=1 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_PORT=29500",
         "1 of 2 ranks are on this machine: a run's ranks are all on one"},
        {"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_PORT=29500 MASTER_ADDR=192.0.2.1",
         "MASTER_ADDR is 192.0.2.1, which is not this machine: the ranks of a run are "
         "all on one"},
        {"RANK=-1 WORLD_SIZE=2 LOCAL_RANK=1",
         "RANK is '-1' in the environment: a number from 0 to 1023 is expected"},
        {"RANK=1 WORLD_SIZE=0 LOCAL_RANK=1",
         "WORLD_SIZE is '0' in the environment: a number from 1 to 1024 is expected"},
        {"RANK=1 WORLD_SIZE=2x LOCAL_RANK=1",
         "WORLD_SIZE is '2x' in the environment: a number from 1 to 1024 is expected"},
        {"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=0",
         "LOCAL_WORLD_SIZE is '0' in the environment: a number from 1 to 1024 is "
         "expected"},
        {"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_PORT=65536",
         "MASTER_PORT is '65536' in the environment: a number from 1 to 65535 is "
         "expected"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct etd_rank_env p;
        set_variables(row[i].set);
        et_status status = etd_rank_env_read(cx, &p);
        is_str(status == ET_OK ? "nothing" : et_error_get(cx)->message,
               row[i].message ? row[i].message : "nothing", "'%s': what is wrong",
               row[i].set);
        et_error_clear(cx);
    }
}

/* ---- the secret of a run's ranks ---- */

static void
read_secret(struct et_ctx *cx, const char *text, struct etd_rank_env *p,
            et_status *status)
{
    set_variables("RANK=0 WORLD_SIZE=1 LOCAL_RANK=0");
    setenv("ETUDE_RANK_SECRET", text, 1);
    *status = etd_rank_env_read(cx, p);
    et_error_clear(cx);
}

/* Of 64 digits those of one byte are HIGH and LOW, the others 0; -1: refused. */
static int
byte_of(struct et_ctx *cx, int at, char high, char low)
{
    struct etd_rank_env p;
    char text[2 * ETD_STORE_SECRET + 1];
    et_status status;
    memset(text, '0', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    text[2 * at] = high;
    text[2 * at + 1] = low;
    read_secret(cx, text, &p, &status);
    for (int i = 0; i < ETD_STORE_SECRET && status == ET_OK; i++)
        if (i != at && p.secret[i] != 0)
            return -2;
    return status == ET_OK ? p.secret[at] : -1;
}

static void
test_secret(struct et_ctx *cx)
{
    static const char digits[] = "0123456789abcdef", capital[] = "0123456789ABCDEF";
    static const char others[] = "/:@G`g -x";
    struct etd_rank_env p;
    et_status status;
    int wrong = 0, taken = 0;
    for (int i = 0; i < 256; i++) {
        int at = i % ETD_STORE_SECRET;
        wrong += byte_of(cx, at, digits[i >> 4], capital[i & 15]) != i;
        wrong += byte_of(cx, at, capital[i >> 4], digits[i & 15]) != i;
    }
    is_int(wrong, 0, "a secret is of hexadecimal digits, small or capital");
    for (size_t i = 0; i < sizeof others - 1; i++) {
        taken += byte_of(cx, 0, others[i], '0') != -1;
        taken += byte_of(cx, ETD_STORE_SECRET - 1, '0', others[i]) != -1;
    }
    is_int(taken, 0, "and of nothing else");
    char text[2 * ETD_STORE_SECRET + 2];
    for (size_t n = sizeof text - 3; n < sizeof text; n++) {
        memset(text, '7', n);
        text[n] = '\0';
        read_secret(cx, text, &p, &status);
        is_int(status, n == sizeof text - 2 ? ET_OK : ET_EINVAL,
               "of %zu digits it is %s", n, n == sizeof text - 2 ? "one" : "none");
    }
    read_secret(cx, "", &p, &status);
    is_int(status, ET_OK, "a run may have none");
}

/* ---- numbers ---- */

/* Rank 2 of 7, with a value of its own in each variable that may have one. */
static void
set_own(void)
{
    set_variables("RANK=2 WORLD_SIZE=7 LOCAL_RANK=5 LOCAL_WORLD_SIZE=7 "
                  "MASTER_ADDR=127.0.0.5 MASTER_PORT=4711 ETUDE_RANK_TIMEOUT=17");
    unsetenv("ETUDE_RANK_LISTENER");
}

static void
test_numbers(struct et_ctx *cx)
{
    struct etd_rank_env p;
    set_own();
    ok(etd_rank_env_read(cx, &p) == ET_OK && p.is_rank && p.rank == 2 && p.world == 7 &&
           p.local_rank == 5 && p.local_world == 7 && p.port == 4711 &&
           p.timeout_ms == 17000 && p.listener == -1 && !p.job[0] &&
           strcmp(p.host, "127.0.0.5") == 0,
       "a rank has each number from its own variable");
    unsetenv("ETUDE_RANK_TIMEOUT");
    ok(etd_rank_env_read(cx, &p) == ET_OK && p.timeout_ms == 300000,
       "a collective may take 300 s where nobody says how long");
    unsetenv("LOCAL_WORLD_SIZE");
    ok(etd_rank_env_read(cx, &p) == ET_OK && p.local_world == 7,
       "all ranks are here where nobody says how many");
}

/* Each number at its bounds, and one beyond them. */
static void
test_bounds(struct et_ctx *cx)
{
    static const struct {
        const char *name;
        long least, most;
    } row[] = {
        {"RANK", 0, 1023},
        {"WORLD_SIZE", 1, 1024},
        {"LOCAL_RANK", 0, 1023},
        {"LOCAL_WORLD_SIZE", 1, 1024},
        {"MASTER_PORT", 1, 65535},
        {"ETUDE_RANK_TIMEOUT", 1, 2147483},
        {"ETUDE_RANK_LISTENER", 0, 2147483647},
    };
    static const char *const no_numbers[] = {"7x", "x", " ", "1e3",
                                             "99999999999999999999"};
    struct etd_rank_env p;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const long values[] = {row[i].least - 1, row[i].least, row[i].most,
                               row[i].most + 1};
        char text[32], want[128], got[8] = "";
        snprintf(want, sizeof want, "a number from %ld to %ld is expected",
                 row[i].least, row[i].most);
        for (int k = 0; k < 9; k++) {
            set_own();
            snprintf(text, sizeof text, "%ld", k < 4 ? values[k] : 0);
            setenv(row[i].name, k < 4 ? text : no_numbers[k - 4], 1);
            const bool read = etd_rank_env_read(cx, &p) == ET_OK;
            const char *why = read ? "" : et_error_get(cx)->message;
            if (k < 4) /* (What is within its bounds need not fit to the others.) */
                got[k] = strstr(why, want) ? '-' : '+';
            else if (!strstr(why, want) || !strstr(why, row[i].name) ||
                     !strstr(why, no_numbers[k - 4]))
                ok(false, "%s is '%s': %s", row[i].name, no_numbers[k - 4], why);
            et_error_clear(cx);
        }
        is_str(got, "-++-", "%s is a number from %ld to %ld", row[i].name, row[i].least,
               row[i].most);
    }
    set_own();
}

/* The descriptor that rank 0 inherits is not another rank's. */
static void
test_listener(struct et_ctx *cx)
{
    struct etd_rank_env p;
    char text[16];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || listen(fd, 1) != 0)
        bail("no socket");
    set_own();
    snprintf(text, sizeof text, "%d", fd);
    setenv("ETUDE_RANK_LISTENER", text, 1);
    ok(etd_rank_env_read(cx, &p) == ET_OK && p.listener == -1,
       "rank 2 leaves the socket that listens alone");
    setenv("RANK", "0", 1);
    ok(etd_rank_env_read(cx, &p) == ET_OK && p.listener == fd, "rank 0 takes it");
    close(fd);
    snprintf(text, sizeof text, "%d", fd = open("/dev/null", O_RDONLY | O_CLOEXEC));
    setenv("ETUDE_RANK_LISTENER", text, 1);
    ok(etd_rank_env_read(cx, &p) == ET_EINVAL, "but not what does not listen");
    et_error_clear(cx);
    close(fd);
    set_own();
}

int
main(void)
{
    struct et_ctx *cx;
    static const char *const loopback[] = {"localhost", "LOCALHOST", "127.0.0.1",
                                           "127.3.2.1", "::1"};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        own = table[i].own;
        const char *at = etd_rank_env_on_loopback(table[i].host);
        is_str(at ? at : "another machine",
               table[i].is_here ? "127.0.0.1" : "another machine",
               "%s, on a machine that is called %s", table[i].host, own);
    }
    for (size_t i = 0; i < sizeof loopback / sizeof *loopback; i++)
        is_str(etd_rank_env_on_loopback(loopback[i]), loopback[i],
               "%s is this machine, as it is", loopback[i]);
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_secret(cx);
    test_launchers(cx);
    test_refusals(cx);
    test_numbers(cx);
    test_bounds(cx);
    test_listener(cx);
    et_ctx_free(&cx);
    return done();
}
