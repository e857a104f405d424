/* SPDX-License-Identifier: Apache-2.0 */
/* Data sets that are files of pictures: which they find, of which class, with which
 * mask, and that a sample shows what its file does; broken files. */
#include <math.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/seams.h"
#include "core/data/loader_impl.h"
#include "core/data/picture_list.h"
#include "etude/algorithm.h"
#include "etude/data.h"
#include "t/data/fixture.h"
#include "t/image/pictures.h"
#include "t/tap.h"

enum { PATH_MOST = 4096, SIDE = 12 };

static struct et_ctx *cx;
static struct picture_file picture;

/* ---- files ---- */

/* The path of NAME in the test's folder; the folders that it lies in are made. */
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

static void
write_bytes(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(place(name), "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
        bail("cannot write %s", name);
}

/* Copies the picture SEED to NAME. */
static void
put(const char *name, const char *seed)
{
    picture_load(&picture, seed);
    write_bytes(name, picture.bytes, picture.n);
}

/* ---- reading ---- */

struct reader {
    struct et_dataset *data;
    struct et_loader *loader;
};

/* SET: name, text, ..., NULL, of options besides the path NAME and the batch's size. */
static et_status
begin(struct reader *r, const char *dataset, const char *name, const char *const *set)
{
    const struct et_dataset_class *c = et_dataset_find(dataset);
    const char *all[32] = {"path", place(name), "batch_size", "64", "shuffle", "false"};
    void *options = NULL;
    *r = (struct reader){NULL, NULL};
    for (int i = 0; set && set[i]; i++)
        all[6 + i] = set[i];
    need(cx, et_options_new(cx, &c->info, all, &options));
    et_status status = et_dataset_open(cx, c, options, &r->data);
    et_options_free(&c->info, &options);
    if (status == ET_OK)
        status = et_loader_new(cx, r->data, &(struct et_loader_config){.seed = 5},
                               &r->loader);
    return status;
}

static const struct et_batch *
next(struct reader *r)
{
    const struct et_batch *b;
    need(cx, et_loader_next(cx, r->loader, &b));
    return b;
}

static void
end(struct reader *r)
{
    et_loader_free(&r->loader);
    et_dataset_close(&r->data);
}

/* Is row ROW of B the part of SEED in the middle, in C channels? */
static bool
shows(const struct et_batch *b, int64_t row, const char *seed, int C)
{
    const float *x = b->field[0].host.f32 + row * SIDE * SIDE * C;
    picture_load(&picture, seed);
    int y0 = (picture.H - SIDE) / 2, x0 = (picture.W - SIDE) / 2;
    int worst = 0;
    for (int i = 0; i < SIDE * SIDE * C; i++) {
        const uint8_t *v =
            picture.rgb + ((y0 + i / C / SIDE) * picture.W + x0 + i / C % SIDE) * 3;
        int d = abs((int)lrintf(x[i] * 255) - v[C == 3 ? i % 3 : 0]);
        worst = d > worst ? d : worst;
    }
    return worst <= 1;
}

static const char middle[] = "[center_crop: {size: 12}]";

/* ---- folders of classes ---- */

static void
folders(void)
{
    struct reader r;
    put("set/train/dog/a.png", "rgb.png");
    put("set/train/dog/b.jpeg", "interlaced.png"); /* its name says nothing */
    put("set/train/cat/z", "alpha.png");
    put("set/train/.hidden/a.png", "rgb.png");
    put("set/train/cat/.hidden", "rgb.png");
    write_bytes("set/train/about.txt", "no class", 8);
    put("set/val/dog/c.png", "grey.png");
    need(cx, begin(&r, "imagefolder", "set",
                   (const char *const[]){"transforms", middle, NULL}));
    const struct et_data_facts *f = &r.data->facts;
    ok(f->n_samples == 3 && et_facts_classes(f) == 2 && f->class_names &&
           strcmp(f->class_names[0], "cat") == 0 &&
           strcmp(f->class_names[1], "dog") == 0,
       "the folders of train are the classes, in order, and hidden files are none");
    const struct et_batch *b = next(&r);
    const int32_t *label = b->field[1].host.i32;
    ok(b->n_samples == 3 && label[0] == 0 && label[1] == 1 && label[2] == 1,
       "each picture has the class of its folder");
    ok(shows(b, 0, "alpha.png", 3) && shows(b, 1, "rgb.png", 3) &&
           shows(b, 2, "interlaced.png", 3),
       "and shows its file");
    et_loader_release(r.loader, b);
    end(&r);
    need(cx, begin(&r, "imagefolder", "set",
                   (const char *const[]){"split", "test", "color", "grey", "transforms",
                                         middle, NULL}));
    b = next(&r);
    ok(b->n_samples == 1 && b->field[1].host.i32[0] == 1 && shows(b, 0, "grey.png", 1),
       "val has train's classes, though it has not all of them; pictures can be grey");
    et_loader_release(r.loader, b);
    end(&r);
    is_int(begin(&r, "imagefolder", "set", NULL), ET_EINVAL,
           "pictures of any size are refused without a size");
    ok(strstr(take_error(cx), "differ in size"), "and the sentence says so");
    end(&r);
}

/* How many pictures a split has. */
static int64_t
count(const char *name, const char *split, const char *fraction)
{
    struct reader r;
    need(cx, begin(&r, "imagefolder", name,
                   (const char *const[]){"split", split, "test_fraction", fraction,
                                         "transforms", middle, NULL}));
    int64_t n = r.data->facts.n_samples;
    end(&r);
    return n;
}

static void
fractions(void)
{
    struct reader r;
    for (int i = 0; i < 60; i++) {
        char name[64];
        snprintf(name, sizeof name, "flat/%c/%d.png", 'a' + i % 3, i);
        put(name, "rgb.png");
    }
    int64_t train = count("flat", "train", "0.3"), test = count("flat", "test", "0.3");
    /* Of 60, 18: within three deviations, which are 3.5 each. */
    ok(train + test == 60 && test > 7 && test < 29,
       "a fraction of the files is to test with (%d of 60)", (int)test);
    is_int(count("flat", "train", "0"), 60, "or none");
    is_int(begin(&r, "imagefolder", "flat",
                 (const char *const[]){"split", "test", "transforms", middle, NULL}),
           ET_EINVAL, "where nothing says which, there is nothing to evaluate with");
    take_error(cx);
    end(&r);
    static const char list[] = "# two of them\n\nb/1.png\r\n  c/2.png \n";
    char path[PATH_MOST];
    write_bytes("list.txt", list, strlen(list));
    snprintf(path, sizeof path, "%s", place("list.txt"));
    need(cx, begin(&r, "imagefolder", "flat",
                   (const char *const[]){"files", path, "transforms", middle, NULL}));
    const struct et_batch *b = next(&r);
    ok(b->n_samples == 2 && b->field[1].host.i32[0] == 1 &&
           b->field[1].host.i32[1] == 2,
       "a file can list them");
    et_loader_release(r.loader, b);
    end(&r);
    static const char *const refused[] = {"d/1.png", "b", "1.png", "/b/1.png"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char name[32];
        write_bytes("list.txt", refused[i], strlen(refused[i]));
        is_int(begin(&r, "imagefolder", "flat",
                     (const char *const[]){"files", path, "transforms", middle, NULL}),
               ET_EFORMAT, "a line that begins with no class and '/' is refused");
        snprintf(name, sizeof name, "'%s'", refused[i]);
        ok(strstr(take_error(cx), name), "and named: %s", name);
        end(&r);
    }
    write_bytes("list.txt", "dog/c.png", 9);
    need(cx, begin(&r, "imagefolder", "set",
                   (const char *const[]){"split", "test", "files", path, "transforms",
                                         middle, NULL}));
    b = next(&r);
    ok(b->n_samples == 1 && shows(b, 0, "grey.png", 3),
       "what is listed to evaluate with lies in val");
    et_loader_release(r.loader, b);
    end(&r);
}

/* The names of the pictures that are to test with, of 40 in the folder NAME, one behind
 * the other. */
static void
tested(const char *name, char *out, size_t size)
{
    struct reader r;
    size_t n = 0;
    for (int i = 0; i < 40; i++) {
        char one[96];
        snprintf(one, sizeof one, "%s/%c/%d.png", name, 'a' + i % 3, i);
        put(one, "rgb.png");
    }
    need(cx, begin(&r, "imagefolder", name,
                   (const char *const[]){"split", "test", "test_fraction", "0.5",
                                         "transforms", middle, NULL}));
    const struct eti_picture_list *l = r.data->state;
    for (int64_t i = 0; i < l->n && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s ",
                              strrchr(eti_string(&l->files, i), '/'));
    end(&r);
}

static void
moved(void)
{
    char one[1024], other[1024];
    tested("here/pictures", one, sizeof one);
    tested("there", other, sizeof other);
    is_str(one, other, "which pictures are to test with does not hang on their folder");
}

/* ---- files that are read in pieces ---- */

static struct {
    struct eti_seams seams;
    atomic_int opened, closed, reads; /* by whatever thread */
} pieces;

/* Each other call is interrupted. */
static ssize_t
read_little(int fd, void *buf, size_t n, off_t at)
{
    if (pieces.reads++ % 2) {
        errno = EINTR;
        return -1;
    }
    return eti_system.file.read(fd, buf, n < 7 ? n : 7, at);
}

static int
open_counted(int dir, const char *path, int flags, mode_t mode)
{
    int fd = eti_system.file.open(dir, path, flags, mode);
    pieces.opened += fd >= 0;
    return fd;
}

static int
close_counted(int fd)
{
    pieces.closed++;
    return eti_system.file.close(fd);
}

static void
in_pieces(void)
{
    struct reader r;
    pieces.seams = *eti_ctx_seams(cx);
    const struct eti_seams *before = eti_ctx_seams(cx);
    pieces.seams.file.read = read_little;
    pieces.seams.file.open = open_counted;
    pieces.seams.file.close = close_counted;
    eti_ctx_set_seams(cx, &pieces.seams);
    need(cx, begin(&r, "imagefolder", "set",
                   (const char *const[]){"transforms", middle, "workers", "0", NULL}));
    pieces.opened = pieces.closed = 0; /* but for folders, which others close */
    const struct et_batch *b = next(&r);
    ok(b->n_samples == 3 && shows(b, 0, "alpha.png", 3) && shows(b, 1, "rgb.png", 3),
       "pictures whose files come in pieces are whole");
    et_loader_release(r.loader, b);
    end(&r);
    eti_ctx_set_seams(cx, before);
    is_int(pieces.opened, 3, "three files were opened");
    is_int(pieces.closed, pieces.opened, "and each closed again");
}

/* ---- broken files ---- */

static void
broken(void)
{
    struct reader r;
    struct et_loader_info info;
    const struct et_batch *b;
    for (int i = 0; i < 6; i++) {
        char name[64];
        snprintf(name, sizeof name, "broken/a/%d.png", i);
        put(name, i % 2 ? "rgb.png" : "alpha.png");
    }
    picture_load(&picture, "rgb.png");
    write_bytes("broken/a/1.png", picture.bytes, picture.n / 2);
    write_bytes("broken/a/4.png", "plain text", 10);
    const char *set[] = {"transforms", middle, "max_corrupt", "0.4", NULL};
    need(cx, begin(&r, "imagefolder", "broken", set));
    struct et_data_summary sum;
    need(cx, et_data_summarise(cx, r.data, 0, &sum));
    ok(sum.n_read == 4 && sum.n_unreadable == 2 && sum.counts[0] == 4 &&
           strstr(sum.unreadable, "broken/a/1.png: "),
       "a summary is of those that can be read, and names the first that cannot: %s",
       sum.unreadable);
    et_data_summary_release(cx, &sum);
    b = next(&r);
    et_loader_get_info(r.loader, &info);
    is_int(info.corrupt, 2, "broken files are counted");
    ok(b->n_samples == 6 && shows(b, 0, "alpha.png", 3) &&
           shows(b, 2, "alpha.png", 3) && shows(b, 3, "rgb.png", 3) &&
           shows(b, 5, "rgb.png", 3),
       "all others stay in their places");
    ok(shows(b, 1, "alpha.png", 3) && shows(b, 4, "rgb.png", 3),
       "and the next one takes the place of each");
    et_loader_release(r.loader, b);
    end(&r);
    set[3] = "0.2";
    need(cx, begin(&r, "imagefolder", "broken", set));
    is_int(et_loader_next(cx, r.loader, &b), ET_EFORMAT,
           "one more than allowed is not");
    const char *said = take_error(cx);
    ok(strstr(said, "broken/a/4.png: it does not begin as") && strstr(said, "sample 4"),
       "the sentence names the file: %s", said);
    end(&r);
}

/* ---- masks ---- */

static void
put_pair(const char *where, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/images/%s.png", where, name);
    put(path, "rgb.png");
    snprintf(path, sizeof path, "%s/masks/%s.png", where, name);
    put(path, "palette.png"); /* of the same size, values 0 to 11 */
}

/* Does mask row ROW of B follow the mask M, in the middle, flipped or not? */
static bool
follows(const struct et_batch *b, int64_t row, const uint8_t *m, bool flipped,
        int ignored, int less)
{
    const int32_t *mask = b->field[1].host.i32 + row * SIDE * SIDE;
    int y0 = (15 - SIDE) / 2, x0 = (21 - SIDE) / 2;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            int v = m[(y0 + y) * 21 + x0 + (flipped ? SIDE - 1 - x : x)];
            int want = v == ignored || v < less ? ET_IGNORE_INDEX : v - less;
            if (mask[y * SIDE + x] != want)
                return false;
        }
    return true;
}

/* What an algorithm adds may not leave rows out of the pictures alone. */
static void
refuse_smaller(const struct et_loader *l)
{
    struct et_algorithm *a;
    int64_t size[2];
    void *options;
    const struct et_algorithm_class *colout = et_algorithm_find("colout");
    need(cx, et_options_new(cx, &colout->info,
                            (const char *const[]){"batch", "false", NULL}, &options));
    need(cx, et_algorithm_new(cx, colout, options, &a));
    et_options_free(&colout->info, &options);
    const struct et_transform_class *c = a->type->transform(a);
    struct et_part part = {.component = &c->info, .options = a->options};
    is_int(eti_loader_try(cx, l, &(struct et_parts){&part, 1}, size), ET_EINVAL,
           "a method that leaves out rows of pictures is refused beside masks");
    const char *said = take_error(cx);
    ok(strstr(said, "colout makes images smaller") != NULL, "and named: %s", said);
    et_algorithm_free(&a);
}

static void
masks(void)
{
    struct reader r;
    const char *said;
    struct et_error why = {0};
    struct eti_decoder d = {.codec = NULL};
    struct eti_picture p;
    static uint8_t mask[21 * 15];
    picture_load(&picture, "palette.png");
    if (eti_decoder_open(&d, picture.bytes, picture.n, &why) != ET_OK ||
        eti_decoder_read(&d, &(struct eti_picture_want){.C = 1, .classes = true}, &p,
                         &why) != ET_OK)
        bail("%s", why.message);
    eti_pixels_copy(&p.pixels, mask);
    eti_decoder_free(&d);

    put_pair("pairs/train", "a");
    put_pair("pairs/train", "b");
    const char *set[] = {"num_classes",
                         "12",
                         "ignore_index",
                         "3",
                         "transforms",
                         "[center_crop: {size: 12}, horizontal_flip: {p: 1}]",
                         NULL};
    need(cx, begin(&r, "segmentation", "pairs", set));
    const struct et_batch *b = next(&r);
    const struct et_desc *desc = &b->field[1].desc;
    ok(b->n_samples == 2 && desc->ndim == 3 && desc->shape[1] == SIDE &&
           desc->shape[2] == SIDE && follows(b, 1, mask, true, 3, 0),
       "a mask follows its picture, and what it is to ignore counts nothing");
    et_loader_release(r.loader, b);
    end(&r);
    for (int ignored = 0; ignored < 12; ignored++) {
        char number[8];
        const char *shifted[] = {"num_classes",  "11",         "skip_zero",
                                 "true",         "transforms", middle,
                                 "ignore_index", number,       NULL};
        snprintf(number, sizeof number, "%d", ignored);
        need(cx, begin(&r, "segmentation", "pairs", shifted));
        b = next(&r);
        ok(follows(b, 0, mask, false, ignored, 1),
           "without 0, classes begin at 1, and %d is ignored as the file has it",
           ignored);
        et_loader_release(r.loader, b);
        end(&r);
    }
    need(cx, begin(&r, "segmentation", "pairs", set));
    refuse_smaller(r.loader);
    end(&r);
    set[1] = "11";
    need(cx, begin(&r, "segmentation", "pairs", set));
    is_int(et_loader_next(cx, r.loader, &b), ET_EFORMAT,
           "a class beyond the last one ends the run");
    said = take_error(cx);
    ok(strstr(said, ".png: segmentation: sample") &&
           strstr(said, "has the class 11 at x "),
       "and is named with its mask's file and the place there: %s", said);
    end(&r);
    put("pairs/train/masks/b.png", "grey.jpg");
    set[1] = "12";
    need(cx, begin(&r, "segmentation", "pairs", set));
    is_int(et_loader_next(cx, r.loader, &b), ET_EFORMAT, "a JPEG is no mask");
    ok(strstr(take_error(cx), "masks/b.png"), "and is named, too");
    end(&r);
}

/* How many pairs of NAME a split has, of those that a fraction is to test with. */
static int64_t
count_pairs(const char *name, const char *split, const char *fraction)
{
    struct reader r;
    need(cx, begin(&r, "segmentation", name,
                   (const char *const[]){"num_classes", "12", "split", split,
                                         "test_fraction", fraction, "transforms",
                                         middle, NULL}));
    int64_t n = r.data->facts.n_samples;
    end(&r);
    return n;
}

static void
divided_masks(void)
{
    for (int i = 0; i < 40; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        put_pair("divided", name);
    }
    int64_t train = count_pairs("divided", "train", "0.3"),
            test = count_pairs("divided", "test", "0.3");
    /* Of 40, 12: within three deviations, which are 2.9 each. */
    ok(train + test == 40 && test > 3 && test < 21,
       "a fraction of the pairs is to test with (%d of 40)", (int)test);
    is_int(count_pairs("divided", "train", "0"), 40, "or none");
}

static void
layouts(void)
{
    struct reader r;
    put("ade/images/training/x.jpg", "rgb.png");
    put("ade/annotations/training/x.png", "palette.png");
    put("voc/JPEGImages/y.jpg", "rgb.png");
    put("voc/JPEGImages/z.jpg", "rgb.png");
    put("voc/SegmentationClass/y.png", "palette.png");
    write_bytes("voc/ImageSets/Segmentation/train.txt", "y\n", 2);
    need(cx,
         begin(&r, "segmentation", "ade",
               (const char *const[]){"layout", "ade20k", "transforms", middle, NULL}));
    const struct et_batch *b = next(&r);
    int negative = 0;
    for (int i = 0; i < SIDE * SIDE; i++)
        negative += b->field[1].host.i32[i] == -1;
    ok(b->n_samples == 1 && et_facts_classes(&r.data->facts) == 150 && negative == 0,
       "ADE20K has 150 classes, from 1 on");
    et_loader_release(r.loader, b);
    end(&r);
    need(cx, begin(&r, "segmentation", "voc",
                   (const char *const[]){"layout", "voc", "transforms", middle, NULL}));
    b = next(&r);
    ok(b->n_samples == 1 && et_facts_classes(&r.data->facts) == 21,
       "VOC lists its pictures, and has 21 classes");
    et_loader_release(r.loader, b);
    end(&r);
}

/* Is class AT of the data set at PATH called WANT, with these OPTIONS? NULL: no class
 * has a name. */
static bool
is_called(const char *path, const char *const *options, int at, const char *want)
{
    struct reader r;
    need(cx, begin(&r, "segmentation", path, options));
    const char *const *names = r.data->facts.class_names;
    const bool same = want ? names && strcmp(names[at], want) == 0 : !names;
    if (!same)
        diag("%s", names ? names[at] : "no names");
    end(&r);
    return same;
}

/* A list of ADE20K's classes makes up for a table that is damaged. */
static void
list_beside_table(void)
{
    static char list[2048];
    const char *in_ade[] = {"layout",     "ade20k", "classes", list,
                            "transforms", middle,   NULL};
    int n = 0;
    for (int i = 1; i <= 150; i++)
        n += snprintf(list + n, sizeof list - (size_t)n, "%c %d", i > 1 ? ',' : '[', i);
    snprintf(list + n, sizeof list - (size_t)n, "]");
    write_bytes("ade/objectInfo150.txt", "Idx\tName\n1\twall\n", 16);
    ok(is_called("ade", in_ade, 149, "150"),
       "a list is asked before the table is read");
}

static void
class_names(void)
{
    struct reader r;
    static char table[8192], twelve[PATH_MOST];
    const char *in_voc[] = {"layout", "voc", "transforms", middle, NULL};
    const char *in_ade[] = {"layout", "ade20k", "transforms", middle, NULL};
    int n = snprintf(table, sizeof table, "Idx\tRatio\tTrain\tVal\tName\n");
    const char *set[] = {"num_classes", "12",   "classes", "[]",
                         "transforms",  middle, NULL};
    const char *file[] = {"num_classes", "12",   "class_file", twelve,
                          "transforms",  middle, NULL};
    ok(is_called("voc", in_voc, 20, "tvmonitor"), "VOC's classes have names");
    ok(is_called("ade", in_ade, 0, NULL),
       "ADE20K's have none without the archive's table");
    for (int i = 1; i <= 150; i++)
        n += snprintf(table + n, sizeof table - (size_t)n, "%d\t0.1\t%d\t7\tthing %d\n",
                      i, 9 * i, i);
    write_bytes("ade/objectInfo150.txt", table, (size_t)n);
    ok(is_called("ade", in_ade, 149, "thing 150"), "and those that it says");
    list_beside_table();
    ok(is_called("pairs", set, 0, NULL), "a folder of masks names no class");
    set[3] = "[a, b, c, d, e, f, g, h, i, j, k, l]";
    ok(is_called("pairs", set, 11, "l"), "but a list does");
    snprintf(twelve, sizeof twelve, "%s", place("twelve.txt"));
    write_bytes("twelve.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nlast one\n", 31);
    ok(is_called("pairs", file, 11, "last one"), "or a file");
    set[3] = "[a, b]";
    is_int(begin(&r, "segmentation", "pairs", set), ET_EINVAL,
           "a list of another length is refused");
    ok(strstr(take_error(cx), "2 names, for 12 classes"), "with both numbers");
    file[1] = "11";
    is_int(begin(&r, "segmentation", "pairs", file), ET_EFORMAT, "so is such a file");
    ok(strstr(take_error(cx), "twelve.txt: 12 names, for 11 classes"),
       "which is named");
}

int
main(void)
{
    cx = need_ctx();
    folders();
    fractions();
    moved();
    in_pieces();
    broken();
    masks();
    divided_masks();
    layouts();
    class_names();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "all memory is given back");
    et_ctx_free(&cx);
    return done();
}
