/* SPDX-License-Identifier: Apache-2.0 */
/* proc.c: see proc.h. The forms are those of proc(5). */
#include "config.h"

#include "core/callbacks/proc.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The next number of TEXT, or NULL at the end of its line. */
static const char *
number(const char *text, double *out)
{
    while (*text == ' ' || *text == '\t')
        text++;
    if (!isdigit((unsigned char)*text))
        return NULL;
    char *end;
    *out = strtod(text, &end);
    return end;
}

bool
eti_proc_cpu(const char *text, double *busy, double *total)
{
    /* user nice system idle iowait irq softirq steal; guests are in user already */
    enum { IDLE = 3, IOWAIT = 4, FIELDS = 8 };
    double value, idle = 0;
    *busy = *total = 0;
    if (strncmp(text, "cpu ", 4) != 0)
        return false;
    text += 4;
    for (int i = 0; i < FIELDS && (text = number(text, &value)); i++) {
        *total += value;
        idle += i == IDLE || i == IOWAIT ? value : 0;
    }
    *busy = *total - idle;
    return *total > 0;
}

double
eti_proc_part(double busy, double total)
{
    return total > 0 ? fmin(fmax(busy / total, 0), 1) : 0;
}

double
eti_proc_memory(const char *text, const char *key)
{
    double kilobytes;
    size_t n = strlen(key);
    for (; *text; text++) {
        if (strncmp(text, key, n) == 0 && text[n] == ':')
            return number(text + n + 1, &kilobytes) ? 1024 * kilobytes : 0;
        text = strchr(text, '\n');
        if (!text)
            return 0;
    }
    return 0;
}

bool
eti_proc_load(const char *text, double out[3])
{
    for (int i = 0; i < 3; i++)
        if (!(text = number(text, &out[i])))
            return false;
    return true;
}

/* Is "lo:" what the line at TEXT begins with, behind blanks? */
static bool
is_loopback(const char *text)
{
    return strncmp(text + strspn(text, " "), "lo:", 3) == 0;
}

void
eti_proc_network(const char *text, bool loopback, double out[ETI_NET_COUNTERS])
{
    /* The columns behind "eth0:": 8 received, 8 sent; the first 4 of each are ours. */
    enum { COLUMNS = 16, HALF = 8, OURS = 4 };
    memset(out, 0, ETI_NET_COUNTERS * sizeof *out);
    while (*text) {
        const char *end = strchr(text, '\n'), *at = strchr(text, ':');
        double value;
        if (!end)
            end = text + strlen(text);
        bool counts = at && at < end; /* unlike the two lines of titles */
        if (counts && (loopback || !is_loopback(text)))
            for (int i = 0; i < COLUMNS && (at = number(at + (i == 0), &value)); i++)
                if (i % HALF < OURS)
                    out[i / HALF * OURS + i % HALF] += value;
        text = *end ? end + 1 : end;
    }
}
