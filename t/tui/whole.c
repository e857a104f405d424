/* SPDX-License-Identifier: Apache-2.0 */
/* whole.c: see whole.h. */
#include "config.h"

#include "t/tui/whole.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "t/tap.h"

enum { ROOM = 1 << 20 };

static char path[PATH_MAX], wanted[ROOM];
static FILE *written; /* what the file is to be */
static char *all, *text;
static size_t all_size, text_size;
static FILE *screen;

void
whole_open(const char *name)
{
    char folder[PATH_MAX - 64];
    const char *src = getenv("ET_SRCDIR");
    if (!realpath(src ? src : ".", folder))
        bail("no sources");
    snprintf(path, sizeof path, "%s/t/tui/%.40s.txt", folder, name);
    FILE *f = fopen(path, "r");
    if (f) {
        wanted[fread(wanted, 1, ROOM - 1, f)] = '\0';
        fclose(f);
    }
    written = open_memstream(&all, &all_size);
    if (!written)
        bail("no memory");
}

FILE *
whole_text(void)
{
    screen = open_memstream(&text, &text_size);
    if (!screen)
        bail("no memory");
    return screen;
}

void
whole_is(const char *name)
{
    char head[128];
    fclose(screen);
    fprintf(written, "## %s\n%s\n", name, text);
    snprintf(head, sizeof head, "## %s\n", name);
    const char *at = strstr(wanted, head);
    const char *from = at ? at + strlen(head) : "";
    const char *end = strstr(from, "\n## ");
    const size_t n = end ? (size_t)(end - from) : strlen(from) - (*from != '\0');
    if (!ok(at && n == strlen(text) && strncmp(from, text, n) == 0, "%s", name))
        diag("\n%s\nwas to be\n%.*s", text, (int)n, from);
    free(text);
}

void
whole_close(void)
{
    fclose(written);
    if (getenv("ETUDE_UPDATE")) {
        FILE *out = fopen(path, "w");
        if (!out || fputs(all, out) < 0 || fclose(out) != 0)
            bail("cannot write %s", path);
    }
    free(all);
}
