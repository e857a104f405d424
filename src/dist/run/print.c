/* SPDX-License-Identifier: Apache-2.0 */
/* print.c: the names of files that take what ranks print: --stdout, --stderr. */
#include "config.h"

#include <string.h>

#include "dist/run/supervisor.h"

/* name, value of rank NUMBER of those here */
#define FIELDS(X)                                                                      \
    X("{rank}", l->base + number)                                                      \
    X("{local_rank}", number)                                                          \
    X("{world_size}", l->world)                                                        \
    X("{local_world_size}", l->nproc)                                                  \
    X("{node_rank}", l->node)

#define NAME(name, value) name " "
const char etd_print_fields[] = FIELDS(NAME);
#undef NAME

/* The value of the field that TEXT begins with, whose length is *N; -1: it is none. */
static int
field(const struct etd_launch *l, int number, const char *text, size_t *n)
{
#define ROW(name, value)                                                               \
    if (strncmp(text, name, strlen(name)) == 0) {                                      \
        *n = strlen(name);                                                             \
        return value;                                                                  \
    }
    FIELDS(ROW)
#undef ROW
    return -1;
}

bool
etd_print_format(const char *format, const char **at, size_t *n)
{
    const struct etd_launch none = {0};
    for (*at = strchr(format, '{'); *at; *at = strchr(*at + *n, '{'))
        if (field(&none, 0, *at, n) < 0) {
            *n = strcspn(*at, "}");
            *n += (*at)[*n] == '}';
            return false;
        }
    return true;
}

void
etd_print_path(const struct etd_supervisor *s, const char *format, int number,
               char *out, size_t size)
{
    size_t used = 0, n;
    if (format[0] != '/')
        used = (size_t)snprintf(out, size, "%s/", s->directory);
    while (*format && used < size - 16) {
        int value = *format == '{' ? field(s->l, number, format, &n) : -1;
        if (value >= 0) {
            used += (size_t)snprintf(out + used, size - used, "%d", value);
            format += n;
        } else {
            out[used++] = *format++;
        }
    }
    out[used] = '\0';
}
