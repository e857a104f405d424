/* SPDX-License-Identifier: Apache-2.0 */
/* heard.c: see heard.h. */
#include "config.h"

#include "t/dist/heard.h"

#include <stdlib.h>
#include <string.h>

#include "t/tap.h"

struct etd_host heard_host;
struct heard heard[HEARD_MOST];
int heard_n;
bool heard_full;
int heard_room = HEARD_MOST;

static bool
take(void *data, const void *bytes, size_t n)
{
    (void)data;
    if (heard_full || heard_n >= heard_room)
        return false;
    heard[heard_n].bytes = malloc(n);
    memcpy(heard[heard_n].bytes, bytes, n);
    heard[heard_n++].n = n;
    return true;
}

void
heard_forget(void)
{
    while (heard_n > 0)
        free(heard[--heard_n].bytes);
}

struct etd_frame
heard_frame(int i)
{
    struct etd_frame f = {.head.kind = ETD_KIND_COUNT};
    struct etd_fault fault;
    if (i < heard_n && etd_read(heard[i].bytes, heard[i].n, &f, &fault) != ET_OK)
        bail("message %d is malformed: %s", i, fault.why);
    return f;
}

int
heard_count(enum etd_kind kind)
{
    int n = 0;
    for (int i = 0; i < heard_n; i++)
        n += heard_frame(i).head.kind == kind;
    return n;
}

struct etd_frame
heard_last(enum etd_kind kind)
{
    for (int i = heard_n - 1; i >= 0; i--)
        if (heard_frame(i).head.kind == kind)
            return heard_frame(i);
    return (struct etd_frame){.head.kind = ETD_KIND_COUNT};
}

struct etd_session *
heard_open(bool is_operator)
{
    struct etd_session *s;
    if (etd_session_new(&heard_host, "test", is_operator, take, NULL, &s) != ET_OK)
        bail("no session");
    return s;
}

void
heard_tell(struct etd_session *s, const char *bytes, size_t n)
{
    if (n == 0 || etd_session_message(s, bytes, n) != ET_OK)
        bail("a message could not be made");
}

void
heard_hello(struct etd_session *s, int minor, const char *run, int64_t after,
            int64_t credit)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_out o;
    const struct etd_head head = {.kind = ETD_HELLO};
    etd_begin(&o, bytes, sizeof bytes, &head, 4 + (after >= 0));
    etd_put_int(&o, "minor", minor);
    etd_put_bool(&o, "stream", true);
    etd_put_int(&o, "credit", credit);
    etd_put_text(&o, "run", run);
    if (after >= 0)
        etd_put_int(&o, "after", after);
    size_t n = etd_end(&o);
    bytes[2] = (char)minor; /* [major, minor, ...]: each a byte */
    heard_tell(s, bytes, n);
}

bool
heard_drive(struct etd_session *s)
{
    bool goes_on = etd_session_step(s);
    while (goes_on && etd_session_is_busy(s))
        goes_on = etd_session_step(s);
    return goes_on;
}
