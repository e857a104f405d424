/* SPDX-License-Identifier: Apache-2.0 */
/* script.c: see script.h. */
#include "t/fuzz/script.h"

#include <stdlib.h>
#include <string.h>

enum { LINES = 200, TIMES = 64, WORDS = 20, MOST = 70000 };

struct line {
    char *word[WORDS]; /* "viewer", "HELLO", "run=test-otter" */
    char *rest;
    int n;
};

static enum etd_kind
kind_of(const char *name)
{
    for (int k = 0; k < ETD_KIND_COUNT; k++)
        if (strcmp(etd_kind_name((enum etd_kind)k), name) == 0)
            return (enum etd_kind)k;
    return ETD_KIND_COUNT;
}

static void
put_value(struct etd_out *o, const char *key, const char *value)
{
    static const char zeros[MOST];
    char *end;
    long long number = strtoll(value, &end, 10);
    if (*value && !*end) {
        etd_put_int(o, key, number);
    } else if (strcmp(value, "yes") == 0 || strcmp(value, "no") == 0) {
        etd_put_bool(o, key, value[0] == 'y');
    } else if (value[0] == '@') {
        size_t n = (size_t)strtoul(value + 1, NULL, 10);
        etd_put_bin(o, key, zeros, n < MOST ? n : MOST);
    } else {
        etd_put_text(o, key, value);
    }
}

/* Bytes of the frame that "WHO KIND KEY=VALUE ..." asks for; 0: the line says something
 * else, or the frame is too long for its kind. */
static size_t
make_frame(const struct line *l, const unsigned char *run, char *bytes, size_t room)
{
    struct etd_out o;
    struct etd_head head = {.kind = l->n > 1 ? kind_of(l->word[1]) : ETD_KIND_COUNT};
    int keys = 0;
    if (head.kind == ETD_KIND_COUNT)
        return 0;
    for (int i = 2; i < l->n; i++)
        keys += strchr(l->word[i], '=') != NULL;
    memcpy(head.run, run, sizeof head.run);
    etd_begin(&o, bytes, room, &head, keys);
    for (int i = 2; i < l->n; i++) {
        char *equals = strchr(l->word[i], '=');
        if (!equals)
            continue;
        *equals = '\0';
        put_value(&o, l->word[i], equals + 1);
        *equals = '=';
    }
    return etd_end(&o);
}

static void
cut(char *text, struct line *l)
{
    char *state = NULL;
    l->n = 0;
    l->rest = text + strcspn(text, " ");
    l->rest += strspn(l->rest, " ");
    l->rest = strdup(l->rest);
    for (char *w = strtok_r(text, " ", &state); w && l->n < WORDS;
         w = strtok_r(NULL, " ", &state))
        l->word[l->n++] = w;
}

void
script_play(const uint8_t *data, size_t size, const unsigned char run[ETD_RUN_ID],
            void (*fn)(void *data, const struct script_line *line), void *arg)
{
    static struct line line[LINES];
    char *text = malloc(size + 1), *bytes = malloc(ETD_CHUNK_BYTES), *state = NULL;
    int n = 0, from = 0, times = 1;
    if (!text || !bytes)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    for (char *l = strtok_r(text, "\n", &state); l && n < LINES;
         l = strtok_r(NULL, "\n", &state))
        if (l[0] != '#')
            cut(l, &line[n++]);
    if (n > 0 && line[0].n > 1 && strcmp(line[0].word[0], "times") == 0) {
        times = (int)(strtoul(line[0].word[1], NULL, 10) % (TIMES + 1));
        from = 1;
    }
    for (int k = 0; k < times; k++)
        for (int i = from; i < n; i++) {
            if (line[i].n == 0)
                continue;
            const struct script_line one = {
                .who = line[i].word[0],
                .rest = line[i].rest,
                .bytes = bytes,
                .n = make_frame(&line[i], run, bytes, ETD_CHUNK_BYTES),
            };
            fn(arg, &one);
        }
    for (int i = 0; i < n; i++)
        free(line[i].rest);
    free(bytes);
    free(text);
}
