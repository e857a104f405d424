/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures and labels in tar files: what of a sample's files is which, what samples
 * are refused, splits, and when shards are read again. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/data/fields.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* ---- files ---- */

enum { BLOCK = 512, SHARD_MOST = 256 * BLOCK };

/* The path of NAME in the test's folder; the folder that it lies in is made. */
static const char *
place(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", scratch_folder(), name);
    for (char *at = path + strlen(scratch_folder()) + 1; (at = strchr(at, '/')); at++) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    return path;
}

/* Adds a member of TYPE with N bytes to a shard of *USED bytes. */
static void
put_member(uint8_t *shard, size_t *used, const char *name, size_t n_name, char type,
           const char *bytes, size_t n)
{
    uint8_t *h = shard + *used;
    int sum = 0;
    memcpy(h, name, n_name);
    snprintf((char *)h + 124, 12, "%011o", (unsigned)n);
    h[156] = (uint8_t)type;
    memcpy(h + 257, "ustar", 5);
    memset(h + 148, ' ', 8);
    for (int i = 0; i < BLOCK; i++)
        sum += h[i];
    snprintf((char *)h + 148, 7, "%06o", sum);
    memcpy(h + BLOCK, bytes, n);
    *used += BLOCK + (n + BLOCK - 1) / BLOCK * BLOCK;
}

/* Writes a shard of MEMBERS: "NAME=CONTENTS" each, parted by '|'; a name after '@' is a
 * link's. In contents '~' is 32767 blanks. */
static void
put_shard(const char *name, const char *members)
{
    static uint8_t shard[SHARD_MOST];
    static char bytes[1 << 17];
    size_t used = 0;
    memset(shard, 0, sizeof shard);
    for (const char *at = members; *at; at += *at == '|') {
        size_t n = 0, n_name = strcspn(at + (*at == '@'), "=");
        const char type = *at == '@' ? '2' : '0', *of = at + (*at == '@');
        for (at = of + n_name + 1; *at && *at != '|'; at++) {
            memset(bytes + n, *at == '~' ? ' ' : *at, *at == '~' ? 32767 : 1);
            n += *at == '~' ? 32767 : 1;
        }
        put_member(shard, &used, of, n_name, type, bytes, n);
    }
    FILE *f = fopen(place(name), "wb");
    if (!f || fwrite(shard, 1, used + 2 * BLOCK, f) != used + 2 * BLOCK || fclose(f))
        bail("cannot write %s", name);
}

/* ---- what samples are ---- */

/* "PICTURE=LABEL" each, or "PICTURE/MASK"; or the error. */
static const char *
samples_of(const char *path, const char *const *set)
{
    static char got[1024];
    const struct et_dataset_class *type = et_dataset_find("tar_shards");
    struct et_dataset *data = NULL;
    struct eti_room room = {0};
    void *options = NULL;
    size_t n = 0;
    got[0] = 0;
    need(cx, et_options_new(cx, &type->info, set, &options));
    need(cx, et_options_set(cx, type->info.options, options, "path", place(path)));
    if (et_dataset_open(cx, type, options, &data) != ET_OK) {
        const char *why = et_error_get(cx)->message, *slash = strrchr(why, '/');
        snprintf(got, sizeof got, "%s", slash ? slash + 1 : why);
        et_error_clear(cx);
    }
    for (int64_t i = 0; data && i < data->facts.n_samples; i++) {
        struct et_sample s;
        struct et_error why = {0};
        bool broken;
        const struct et_field *f = &data->facts.field[1];
        if (eti_sample_read(data, i, NULL, &room, &s, &why, &broken) != ET_OK)
            bail("%s", why.message);
        const int32_t label =
            f->kind == ET_FIELD_MASK ? 0 : *(const int32_t *)s.v[1].data;
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%.*s", i ? " " : "",
                              (int)s.v[0].shape[0], (const char *)s.v[0].data);
        if (f->kind == ET_FIELD_MASK)
            n += (size_t)snprintf(got + n, sizeof got - n, "/%.*s",
                                  (int)s.v[1].shape[0], (const char *)s.v[1].data);
        else if (f->dtype != ET_I32)
            n += (size_t)snprintf(got + n, sizeof got - n, "=%.9g",
                                  (double)*(const float *)s.v[1].data);
        else if (data->facts.class_names)
            n += (size_t)snprintf(got + n, sizeof got - n, "=%s",
                                  data->facts.class_names[label]);
        else
            n += (size_t)snprintf(got + n, sizeof got - n, "=%d", (int)label);
    }
    et_dataset_close(&data);
    eti_room_free(&room);
    et_options_free(&type->info, &options);
    return got;
}

#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})

static void
test_parts(void)
{
    static const char *const numbers[] = {"task", "regression", NULL},
                             *const masks[] = {"num_classes", "9", NULL},
                             *const other[] = {"image", "big.png;png", "target",
                                               "ids",   "json_key",    "of",
                                               NULL};
    const struct {
        const char *says, *members, *want;
        const char *const *set;
    } rows[] = {
        {"endings are so in capitals too", "a.JPG=A|a.Cls=1|b.jpg=B|b.CLS=0", "A=1 B=0",
         NULL},
        {"blanks around a label are none of it",
         "a.jpg=A|a.txt= \t\n x y \r\n|b.jpg=B|b.txt=z", "A=x y B=z", NULL},
        {"of a sample's pictures and labels the first in the lists counts",
         "a.png=P|a.webp=W|a.jpeg=J|a.json={\"label\":\"j\"}|a.txt=t", "J=t", NULL},
        {"which options name", "a.jpg=J|a.cls=7|a.ids=3|a.big.png=B|a.png=P", "B=3",
         other},
        {"JSON has texts and numbers",
         "a.jpg=A|a.json={\"of\":1,\"label\":\"x\"}|b.jpg=B|b.json={\"label\":12}",
         "A=x B=12", NULL},
        {"with all their digits",
         "a.jpg=A|a.json={\"label\":1.2345678}|b.jpg=B|b.json={\"label\":-7}",
         "A=1.23456776 B=-7", numbers},
        {"a mask is not the picture", "a.png=P|a.mask.png=M|b.jpg=J|b.png=N", "P/M J/N",
         masks},
        {"of masks too the first in the list counts",
         "a.jpg=J|a.png=P|a.seg.png=S|b.png=Q|b.seg.png=T|b.mask.png=M", "J/S Q/M",
         masks},
        {"a picture is not its own mask", "a.jpg=J|a.png=M|b.png=P",
         "s.tar: sample b has no file that ends in one of "
         "cls;txt;json;mask.png;seg.png;png",
         masks},
        {"a label alone is no sample", "a.jpg=J|a.cls=1|b.cls=2",
         "s.tar: sample b has no file that ends in one of jpg;jpeg;webp;png", NULL},
        {"a name's key ends at the first point behind its folder",
         "x.y/a.jpg=A|x.y/a.b.cls=8|x.y/a.cls=1|z/a.jpg=B|z/a.cls=0", "A=1 B=0", NULL},
        {"what has no ending, no key, or is no file is passed over",
         "a.jpg=A|README=r|c.=n|.x=y|@d.jpg=|a.cls=1|b.jpg=B|b.cls=0", "A=1 B=0", NULL},
        {"a file that comes twice is refused", "a.jpg=A|a.cls=1|a.JPG=B",
         "s.tar: a.JPG comes twice in a row", NULL},
        {"a long label is read", "a.jpg=A|a.txt=~~xy|b.jpg=B|b.txt=z", "A=xy B=z",
         NULL},
        {"and one that is longer is refused", "a.jpg=A|a.txt=~~xyz",
         "s.tar: a.txt: a label of 65537 bytes", NULL},
        {"a label has one line", "a.jpg=A|a.txt=x\ny",
         "s.tar: a.jpg: its label has more than a line", NULL},
        {"so has a name, without a tab", "a\tb.jpg=A|a\tb.cls=1",
         "s.tar: a\tb.jpg: its label has more than a line", NULL},
        {"samples have labels, or masks", "a.jpg=A|a.cls=1|b.jpg=B|b.png=M",
         "s.tar: b.jpg: some samples have masks, and others labels", NULL},
        {"whichever come first", "a.jpg=B|a.png=M|b.jpg=A|b.cls=1",
         "s.tar: b.jpg: some samples have masks, and others labels", masks},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[64];
        snprintf(path, sizeof path, "%zu/s.tar", i);
        put_shard(path, rows[i].members);
        is_str(samples_of(path, rows[i].set), rows[i].want, "%s", rows[i].says);
    }
}

/* A folder for each split is a split, of which nothing is left out. */
static void
test_splits(void)
{
    char members[512] = "";
    for (int i = 0, n = 0; i < 6; i++)
        n += snprintf(members + n, sizeof members - (size_t)n, "%s%d.jpg=%d|%d.cls=%d",
                      i ? "|" : "", i, i, i, i);
    put_shard("apart/train/s.tar", members);
    put_shard("apart/val/s.tar", "x.jpg=X|x.cls=1|y.jpg=Y|y.cls=0|z.jpg=Z|z.cls=1");
    put_shard("apart/val/notes.txt", "");
    is_str(samples_of("apart", SET("split", "test", "test_fraction", "0.5")),
           "X=1 Y=0 Z=1", "the split that is val has all that is there");
    is_str(samples_of("apart", SET("split", "train", "test_fraction", "0.5")),
           "0=0 1=1 2=2 3=3 4=4 5=5", "and so has train");
    put_shard("one/s.tar", members);
    char both[128];
    int used =
        snprintf(both, sizeof both, "%s|",
                 samples_of("one", SET("split", "train", "test_fraction", "0.5")));
    snprintf(both + used, sizeof both - (size_t)used, "%s",
             samples_of("one", SET("split", "test", "test_fraction", "0.5")));
    int there = 0;
    for (int i = 0; i < 6; i++) {
        const char pair[] = {(char)('0' + i), '=', (char)('0' + i), 0};
        there += strstr(both, pair) != NULL;
    }
    ok(there == 6 && strlen(both) == 6 * 4 - 1, "else each is of one split: %s", both);
    /* A sample of the test split, the first or the third, has a label of no class. */
    for (int k = 0; k <= 8; k += 8) {
        const char *test = strchr(both, '|') + 1 + k;
        char bad[512], want[64];
        snprintf(bad, sizeof bad, "%s", members);
        strstr(bad, (char[]){*test, '.', 'c', 0})[6] = 'x';
        put_shard("bad/s.tar", bad);
        snprintf(want, sizeof want, "s.tar: %c.jpg: 'x' is not a number", *test);
        is_str(samples_of("bad", SET("split", "train", "test_fraction", "0.5", "task",
                                     "regression")),
               want,
               "a label of the other split that is none is named with its sample");
    }
}

/* An index is made anew where shards have other sizes or times, or others are asked
 * for. */
static void
test_again(void)
{
    const struct timespec then[2] = {{1000000000, 0}, {1000000000, 0}};
    put_shard("again/s.tar", "a.jpg=A|a.cls=1|a.txt=x");
    utimensat(AT_FDCWD, place("again/s.tar"), then, 0);
    is_str(samples_of("again/s.tar", NULL), "A=1", "shards are read");
    is_str(samples_of("again/s.tar", SET("target", "txt")), "A=x",
           "and again for other labels");
    put_shard("again/s.tar", "b.jpg=B|b.cls=0|b.txt=y");
    is_str(samples_of("again/s.tar", NULL), "B=0", "as when they are written later");
    utimensat(AT_FDCWD, place("again/s.tar"), then, 0);
    is_str(samples_of("again/s.tar", NULL), "B=0", "or are said to be older");
    put_shard("again/s.tar", "c.jpg=C|c.cls=0|d.jpg=D|d.cls=1");
    utimensat(AT_FDCWD, place("again/s.tar"), then, 0);
    is_str(samples_of("again/s.tar", NULL), "C=0 D=1",
           "or have another size at the same time");
}

static void
test_gray(void)
{
    const struct et_dataset_class *type = et_dataset_find("tar_shards");
    put_shard("gray/s.tar", "a.jpg=A|a.cls=0");
    for (int i = 0; i < 2; i++) {
        struct et_dataset *data;
        void *options = NULL;
        need(cx, et_options_new(
                     cx, &type->info,
                     SET("path", place("gray/s.tar"), "color", i ? "grey" : "rgb"),
                     &options));
        need(cx, et_dataset_open(cx, type, options, &data));
        is_int(data->facts.field[0].shape[0], i ? 1 : 3, "pictures are %s",
               i ? "gray where that is asked for" : "of three channels");
        et_dataset_close(&data);
        et_options_free(&type->info, &options);
    }
}

int
main(void)
{
    cx = need_ctx();
    test_parts();
    test_splits();
    test_again();
    test_gray();
    et_ctx_free(&cx);
    return done();
}
