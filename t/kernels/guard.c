/* SPDX-License-Identifier: Apache-2.0 */
/* guard.c: see guard.h. */
#include "t/kernels/guard.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "t/tap.h"

static const char *under_way = "";

static void
say(const char *text)
{
    if (write(STDOUT_FILENO, text, strlen(text)) < 0)
        _exit(1);
}

/* A kernel may be anywhere, in any thread: nothing can go on. */
static void
left_block(int number)
{
    say("Bail out! ");
    say(under_way);
    say(": reads or writes outside of its operands, results and workspace\n");
    signal(number, SIG_DFL);
    raise(number);
}

void
guard_watch(const char *text)
{
    static bool watching;
    under_way = text;
    if (watching)
        return;
    struct sigaction action = {.sa_handler = left_block, .sa_flags = SA_RESETHAND};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    watching = true;
}

/* Blocks that were freed, for the next of as many pages: a case makes the same ones
 * again and again. */
enum { KEPT = 64 };
static struct kept {
    char *map;
    size_t length;
} kept[KEPT];

static char *
take_kept(size_t length)
{
    for (int i = 0; i < KEPT; i++)
        if (kept[i].map && kept[i].length == length) {
            char *map = kept[i].map;
            kept[i].map = NULL;
            return map;
        }
    return NULL;
}

static void
keep(char *map, size_t length)
{
    static int next;
    struct kept *k = &kept[next++ % KEPT];
    if (k->map)
        munmap(k->map, k->length);
    k->map = map;
    k->length = length;
}

/* Two pages that nobody may touch, and USABLE bytes between them. */
static char *
map_between(size_t usable, size_t page)
{
    char *map =
        mmap(NULL, usable + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED ||
        (usable && mprotect(map + page, usable, PROT_READ | PROT_WRITE) != 0))
        bail("no memory for %zu bytes", usable);
    return map;
}

void
guard_new(struct guard *g, size_t bytes, int byte)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t usable = (bytes + page - 1) / page * page;
    g->bytes = bytes;
    g->length = usable + 2 * page;
    g->map = take_kept(g->length);
    if (!g->map)
        g->map = map_between(usable, page);
    g->at = g->map + page + usable - bytes;
    memset(g->map + page, byte, usable);
}

bool
guard_free(struct guard *g, int byte)
{
    if (!g->map)
        return true;
    bool whole = true;
    for (const char *p = g->map + sysconf(_SC_PAGESIZE); p < g->at; p++)
        whole &= *p == (char)byte;
    keep(g->map, g->length);
    g->map = NULL;
    return whole;
}
