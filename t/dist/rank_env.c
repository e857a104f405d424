/* Which secrets are taken, and which names are this machine: MASTER_ADDR is one of
 * them, as the ranks of a run are all on one. What the machine is called, which
 * addresses it has and what other names stand for is the test's: see the functions of
 * the C library below. */
#include "config.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* ---- the secret of a run's ranks ---- */

static void
read_secret(struct et_ctx *cx, const char *text, struct etd_rank_env *p, et_status *status)
{
    static const char *const variables[] = {"RANK",       "0", "WORLD_SIZE", "1",
                                            "LOCAL_RANK", "0", NULL};
    for (int i = 0; variables[i]; i += 2)
        setenv(variables[i], variables[i + 1], 1);
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
    et_ctx_free(&cx);
    return done();
}
