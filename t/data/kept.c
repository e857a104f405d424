/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of decoded pictures: how large pictures in it are, which options need a
 * cache of their own, what is logged of it, and what happens to a damaged one. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/data/fields.h"
#include "core/data/file.h"
#include "core/image/encode.h"
#include "t/data/fixture.h"
#include "t/image/pictures.h"
#include "t/tap.h"

enum { PATH_MOST = 1024 };

static struct et_ctx *cx;

/* The path of NAME in the test's folder; makes the folders in which it lies. */
static const char *
place(const char *name)
{
    static char path[PATH_MOST];
    snprintf(path, sizeof path, "%s/%s", scratch_folder(), name);
    for (char *at = strchr(path + strlen(scratch_folder()) + 1, '/'); at;
         at = strchr(at + 1, '/')) {
        *at = 0;
        mkdir(path, 0700);
        *at = '/';
    }
    return path;
}

/* Writes a picture of H x W whose bytes all differ from their neighbours. */
static void
put(const char *name, int64_t h, int64_t w)
{
    static uint8_t rgb[3 * 64 * 64];
    for (int64_t i = 0; i < 3 * h * w; i++)
        rgb[i] = (uint8_t)(i * 7);
    need(cx, eti_png_write(cx, place(name), rgb, w, h));
}

static void
put_text(const char *name, const char *text)
{
    FILE *f = fopen(place(name), "wb");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", name);
}

struct opened {
    struct et_dataset *data;
    struct eti_room room;
    struct et_sample sample;
};

/* Opens NAME as a data set of TYPE, with its cache in FOLDER and the options SET. */
static et_status
try_open(struct opened *o, const char *type, const char *name, const char *folder,
         const char *const *set)
{
    const struct et_dataset_class *c = et_dataset_find(type);
    char cache[PATH_MOST];
    void *options;
    *o = (struct opened){NULL};
    snprintf(cache, sizeof cache, "%s", place(folder));
    need(cx, et_options_new(cx, &c->info, set, &options));
    need(cx, et_options_set(cx, c->info.options, options, "path", place(name)));
    need(cx, et_options_set(cx, c->info.options, options, "cache", cache));
    et_status status = et_dataset_open(cx, c, options, &o->data);
    et_options_free(&c->info, &options);
    return status;
}

static void
finish(struct opened *o)
{
    et_dataset_close(&o->data);
    eti_room_free(&o->room);
}

#define SET(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct et_sample *
read_at(struct opened *o, int64_t at)
{
    struct et_error why = {0};
    bool broken;
    if (eti_sample_read(o->data, at, NULL, &o->room, &o->sample, &why, &broken) !=
        ET_OK)
        bail("%s", why.message);
    return &o->sample;
}

/* Returns how many caches FOLDER has; writes the path of the last of them to PATH. */
static int
caches(const char *folder, char path[PATH_MOST])
{
    char where[PATH_MOST];
    snprintf(where, sizeof where, "%s", place(folder));
    DIR *d = opendir(where);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strncmp(e->d_name, "pictures-", 9) != 0)
            continue;
        snprintf(path, PATH_MOST, "%.700s/%.255s", where, e->d_name);
        n++;
    }
    if (d)
        closedir(d);
    return n;
}

static struct heard {
    int made, unread;
    char about[32], said[512];
} heard;

static void
hear(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    if (level != ET_LOG_WARN)
        return;
    const char *about = strstr(text, ": about ");
    if (about) {
        heard.made++;
        snprintf(heard.about, sizeof heard.about, "%s", about + 8);
        snprintf(heard.said, sizeof heard.said, "%s", text);
    }
    const char *unread = strstr(text, " of the pictures cannot be read");
    if (unread)
        heard.unread += unread[-1] - '0';
}

/* ---- how large pictures in the cache are ---- */

static void
test_sizes(void)
{
    static const struct {
        int64_t h, w, kept_h, kept_w;
    } rows[] = {{10, 20, 9, 18}, {20, 10, 18, 9}, {8, 8, 8, 8},   {40, 9, 40, 9},
                {9, 40, 9, 40},  {8, 20, 8, 20},  {16, 16, 9, 9}, {10, 33, 9, 29}};
    enum { N = sizeof rows / sizeof *rows };
    struct opened o;
    char path[PATH_MOST], text[32];
    struct stat st;
    int64_t bytes = 24 + 16 * N;
    for (int i = 0; i < N; i++) {
        char name[32];
        snprintf(name, sizeof name, "sides/%c/%d.png", 'a' + i % 2, i);
        put(name, rows[i].h, rows[i].w);
    }
    heard = (struct heard){0};
    need(cx, try_open(&o, "imagefolder", "sides", "kept", SET("cache_size", "9")));
    int wrong = 0;
    for (int i = 0; i < N; i++) {
        /* Pictures of folder a come first: 0, 2, 4, 6, then 1, 3, 5, 7. */
        const int at = i % 2 ? (N + 1) / 2 + i / 2 : i / 2;
        const struct et_sample *s = read_at(&o, at);
        const struct et_pixels *p = &s->v[0].pixels;
        wrong += p->H != rows[i].kept_h || p->W != rows[i].kept_w || p->C != 3;
        wrong += *(const int32_t *)s->v[1].data != i % 2;
        for (int64_t k = 0; p->H == rows[i].h && k < 3 * p->H * p->W; k++)
            wrong += p->data[k] != (uint8_t)(k * 7);
        bytes += 3 * rows[i].kept_h * rows[i].kept_w;
    }
    is_int(wrong, 0,
           "the cache shrinks short sides to 9 and long sides in proportion, leaves "
           "small pictures alone, and keeps all labels");
    finish(&o);
    is_int(caches("kept", path), 1, "a data set of pictures makes one cache");
    ok(stat(path, &st) == 0 && st.st_size == bytes,
       "the cache has as many bytes as its pixels take");
    eti_size_text(bytes, text, sizeof text);
    is_str(heard.about, text, "the size of the cache was logged before it was made");
    ok(strstr(heard.said, "imagefolder: 8 pictures are decoded once, with short sides "
                          "of at most 9 pixels, into ") != NULL,
       "the log says what is put into the cache: %s", heard.said);
    is_int(heard.unread, 0, "the log tells of no picture that could not be read");
}

/* ---- what a cache belongs to ---- */

/* Each option that changes pixels has its own cache, which is found again. */
static void
test_of(void)
{
    static const char *const sets[][5] = {
        {"cache_size", "8", NULL},
        {"cache_size", "7", NULL},
        {"cache_size", "8", "color", "grey", NULL},
        {"cache_size", "8", "test_fraction", "0.5", NULL},
    };
    char path[PATH_MOST];
    heard = (struct heard){0};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 4; i++) {
            struct opened o;
            need(cx, try_open(&o, "imagefolder", "sides", "own", sets[i]));
            is_int(read_at(&o, 0)->v[0].pixels.C, i == 2 ? 1 : 3,
                   "cached pictures have the channels that the options ask for");
            finish(&o);
        }
    is_int(caches("own", path), 4,
           "other sizes, channels and pictures have caches of their own");
    is_int(heard.made, 4, "each of four caches is made once");
    for (int i = 0; i < 2; i++) { /* as many pictures, of one size */
        struct opened o;
        put(i ? "names/b/0.png" : "other/a/0.png", 5, 5);
        need(cx,
             try_open(&o, "imagefolder", i ? "names" : "other", "names-kept", sets[0]));
        finish(&o);
    }
    is_int(caches("names-kept", path), 2,
           "pictures of other names have a cache of their own");
    heard.made -= 2;
    put("sides/a/2.png", 12, 12);
    struct opened o;
    need(cx, try_open(&o, "imagefolder", "sides", "own", sets[0]));
    ok(heard.made == 5 && caches("own", path) == 4 &&
           read_at(&o, 1)->v[0].pixels.W == 8,
       "the cache of a picture that has changed is made again in its place");
    finish(&o);
}

/* ---- pictures that cannot be read ---- */

static void
test_unread(void)
{
    struct opened o;
    struct et_error why = {0};
    bool broken;
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "odd/images/%d.png", i);
        put(name, 6, 10);
        snprintf(name, sizeof name, "odd/masks/%d.png", i);
        uint8_t mask[80];
        memset(mask, i, sizeof mask);
        need(cx, eti_png_write_mask(cx, place(name), mask, i == 1 ? 9 : 10,
                                    i == 2 ? 7 : 6));
    }
    put_text("odd/images/3.png", "no picture");
    heard = (struct heard){0};
    need(cx, try_open(&o, "segmentation", "odd", "odds",
                      SET("num_classes", "9", "cache_size", "100")));
    is_int(heard.unread, 3,
           "pictures without a mask of their size, and a file that is no picture, are "
           "not cached");
    const struct et_sample *s = read_at(&o, 0);
    ok(s->v[0].pixels.data && s->v[1].pixels.H == 6 && s->v[1].pixels.W == 10 &&
           s->v[1].pixels.data[59] == 0,
       "a picture with a mask of its size is cached");
    for (int i = 1; i < 4; i++) {
        s = read_at(&o, i);
        ok(!s->v[0].pixels.data && s->v[0].data && s->v[0].file &&
               strstr(s->v[0].file, "/odd/images/") && s->v[1].data,
           "picture %d, which is not cached, is read from its files", i);
    }
    struct eti_decoder d = {.codec = NULL};
    ok(eti_sample_decode(o.data, 3, 0, &d, &o.sample, &why, &broken) == ET_EFORMAT &&
           strstr(why.message, "odd/images/3.png: ") && !broken,
       "a picture that cannot be decoded is named: %s", why.message);
    eti_decoder_free(&d);
    finish(&o);
}

/* ---- damaged caches ---- */

/* The cache is a head of 24 bytes, then 16 bytes for each picture: its offset in eight,
 * its height and its width in four each. */
static void
test_damaged(void)
{
    static const struct {
        int64_t offset; /* 0: it stays */
        int32_t h, w;
        const char *what;
        bool good;
    } rows[] = {
        {0, 8, 8, "as it was", true},
        {0, 0, 0, "of no pixels", true},
        {0, 0, 8, "without a height", false},
        {0, 8, 0, "without a width", false},
        {0, -8, 8, "of a negative height", false},
        {1, 8, 8, "that lies in the head", false},
        {1 << 20, 8, 8, "that lies behind the file's end", false},
        {0, 1 << 30, 1 << 30, "that is larger than any file", false},
    };
    char path[PATH_MOST], copy[PATH_MOST + 8];
    struct opened o;
    static uint8_t bytes[1 << 16];
    put("one/a/0.png", 8, 8);
    put("one/a/1.png", 8, 8);
    need(cx, try_open(&o, "imagefolder", "one", "damaged", SET("cache_size", "8")));
    finish(&o);
    caches("damaged", path);
    snprintf(copy, sizeof copy, "%s", path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int fd = open(copy, O_RDWR);
        ssize_t n = pread(fd, bytes, sizeof bytes, 0);
        int64_t at = rows[i].offset;
        struct opened again;
        if (at)
            pwrite(fd, &at, sizeof at, 24 + 16);
        if (n != 24 + 32 + 2 * 192 || pwrite(fd, &rows[i].h, 4, 24 + 16 + 8) != 4 ||
            pwrite(fd, &rows[i].w, 4, 24 + 16 + 12) != 4)
            bail("no cache in %s", copy);
        et_status s =
            try_open(&again, "imagefolder", "one", "damaged", SET("cache_size", "8"));
        const char *said = take_error(cx);
        ok(rows[i].good ? s == ET_OK
                        : s == ET_EFORMAT && strstr(said, ": damaged at entry 1: "),
           "a cache with a picture %s: %s", rows[i].what, said);
        finish(&again);
        if (pwrite(fd, bytes, (size_t)n, 0) != n)
            bail("cannot mend %s", copy);
        close(fd);
    }
    heard = (struct heard){0};
    for (int i = 0; i < 3;
         i++) { /* the head: the format, the pictures' key, their number */
        int fd = open(copy, O_RDWR);
        const uint8_t other = 0x5a;
        if (pwrite(fd, &other, 1, 8 * i) != 1)
            bail("cannot write %s", copy);
        close(fd);
        need(cx, try_open(&o, "imagefolder", "one", "damaged", SET("cache_size", "8")));
        finish(&o);
    }
    is_int(heard.made, 3, "a cache whose head is changed is made again");
}

int
main(void)
{
    cx = need_ctx();
    et_ctx_set_log(cx, ET_LOG_WARN, hear, NULL);
    test_sizes();
    test_of();
    test_unread();
    test_damaged();
    et_ctx_free(&cx);
    return done();
}
