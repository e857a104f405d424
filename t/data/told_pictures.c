/* SPDX-License-Identifier: Apache-2.0 */
/* What sets of pictures say of themselves, which files they take, with which target. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "t/data/fixture.h"
#include "t/data/says.h"
#include "t/tap.h"

/* Writes files, each with its own path below the folder as what it has. */
static void
write_files(const char *const *paths)
{
    for (; *paths; paths++) {
        char folder[700];
        for (const char *slash = strchr(*paths, '/'); slash;
             slash = strchr(slash + 1, '/')) {
            snprintf(folder, sizeof folder, "%s/%.*s", scratch_folder(),
                     (int)(slash - *paths), *paths);
            mkdir(folder, 0777);
        }
        write_file(*paths, *paths, strlen(*paths), false);
    }
}

static const char *
inside(const char *path)
{
    static char whole[4][700];
    static int at;
    at = (at + 1) % 4;
    snprintf(whole[at], sizeof *whole, "%s/%s", scratch_folder(), path);
    return whole[at];
}

static void
test_folders(void)
{
    static const char *const
        apart[] = {"apart/train/dog/b", "apart/train/dog/a", "apart/train/cat/c",
                   "apart/train/note",  "apart/test/dog/e",  "apart/valid/dog/d",
                   "apart/valid/eel/f", "apart/mine/dog/g",  NULL},
        *const mixed[] = {"mixed/dog/a", "mixed/dog/b", "mixed/dog/c", "mixed/cat/a",
                          "mixed/cat/b", "mixed/cat/c", NULL};
    static const char lines[] = "dog/a\ncat/c\n";
    write_files(apart);
    write_files(mixed);
    says("a folder for each class", "imagefolder", SET("path", inside("apart")),
         "3 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 2; "
         "cat, dog\n"
         "apart/train/cat/c | 0\n"
         "apart/train/dog/a | 1\n"
         "apart/train/dog/b | 1\n");
    says("and another to evaluate with", "imagefolder",
         SET("path", inside("apart"), "split", "test", "color", "grey"),
         "1 samples, 0 bytes; image: image u8 [1,-1,-1]; target: values i32 [] < 2; "
         "cat, dog\n"
         "apart/valid/dog/d | 1\n");
    says("those that are named", "imagefolder",
         SET("path", inside("apart"), "files",
             write_file("lines.txt", lines, sizeof lines - 1, false)),
         "2 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 2; "
         "cat, dog\n"
         "apart/train/dog/a | 1\n"
         "apart/train/cat/c | 0\n");
    says("a part to train with", "imagefolder",
         SET("path", inside("mixed"), "test_fraction", "0.4"),
         "2 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 2; "
         "cat, dog\n"
         "mixed/cat/a | 0\n"
         "mixed/cat/b | 0\n");
    says("and the rest", "imagefolder",
         SET("path", inside("mixed"), "test_fraction", "0.4", "split", "test"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 2; "
         "cat, dog\n"
         "mixed/cat/c | 0\n"
         "mixed/dog/a | 1\n"
         "mixed/dog/b | 1\n"
         "mixed/dog/c | 1\n");
}

static void
test_csv(void)
{
    static const char *const pictures[] = {"csv/a", "csv/b", "csv/c", "csv/d", NULL};
    static const char rows[] = "kind,picture,x,y,rank,name\n"
                               "3,a,1.5,7,0,dog\n"
                               "1,b,2.5,8,1,cat\n"
                               "3,c,3.5,9,2,dog\n"
                               "0,d,4.5,6,2,eel\n";
    write_files(pictures);
    const char *path = inside("csv/rows.csv");
    write_file("csv/rows.csv", rows, sizeof rows - 1, false);
    says("pictures with names of classes", "csv_images",
         SET("path", path, "file_column", "picture"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 3; "
         "cat, dog, eel\n"
         "csv/a | 1\n"
         "csv/b | 0\n"
         "csv/c | 1\n"
         "csv/d | 2\n");
    says("in an order of the user's", "csv_images",
         SET("path", path, "file_column", "picture", "classes", "[eel, fox, cat, dog]"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 4; "
         "eel, fox, cat, dog\n"
         "csv/a | 3\n"
         "csv/b | 2\n"
         "csv/c | 3\n"
         "csv/d | 0\n");
    says("with numbers of classes", "csv_images",
         SET("path", path, "file_column", "picture", "target", "[kind]"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 4\n"
         "csv/a | 3\n"
         "csv/b | 1\n"
         "csv/c | 3\n"
         "csv/d | 0\n");
    says("which may rise", "csv_images",
         SET("path", path, "file_column", "picture", "target", "[rank]"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 3\n"
         "csv/a | 0\n"
         "csv/b | 1\n"
         "csv/c | 2\n"
         "csv/d | 2\n");
    says("of which there may be more", "csv_images",
         SET("path", path, "file_column", "picture", "target", "[kind]", "num_classes",
             "6", "color", "grey"),
         "4 samples, 0 bytes; image: image u8 [1,-1,-1]; target: values i32 [] < 6\n"
         "csv/a | 3\n"
         "csv/b | 1\n"
         "csv/c | 3\n"
         "csv/d | 0\n");
    says("that are names", "csv_images",
         SET("path", path, "file_column", "picture", "target", "[kind]", "classes",
             "['3', '0', '1']"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 3; 3, "
         "0, 1\n"
         "csv/a | 0\n"
         "csv/b | 2\n"
         "csv/c | 0\n"
         "csv/d | 1\n");
    says("that are numbers", "csv_images",
         SET("path", path, "file_column", "picture", "target", "[kind]", "task",
             "regression"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values f32 []\n"
         "csv/a | 3\n"
         "csv/b | 1\n"
         "csv/c | 3\n"
         "csv/d | 0\n");
    says("with a number", "csv_images",
         SET("path", path, "file_column", "picture", "target", "[x]"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values f32 []\n"
         "csv/a | 1.5\n"
         "csv/b | 2.5\n"
         "csv/c | 3.5\n"
         "csv/d | 4.5\n");
    says("that is a class", "csv_images",
         SET("path", path, "file_column", "picture", "target", "[x]", "task",
             "classification"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 4; "
         "1.5, 2.5, 3.5, 4.5\n"
         "csv/a | 0\n"
         "csv/b | 1\n"
         "csv/c | 2\n"
         "csv/d | 3\n");
    says("named as numbers are", "csv_images",
         SET("path", path, "file_column", "picture", "target", "[x]", "classes",
             "['4.5', '1.5', '2.5', '3.5']"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 4; "
         "4.5, 1.5, 2.5, 3.5\n"
         "csv/a | 1\n"
         "csv/b | 2\n"
         "csv/c | 3\n"
         "csv/d | 0\n");
    says("a part of them, by their files", "csv_images",
         SET("path", path, "file_column", "picture", "test_fraction", "0.5"),
         "2 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 3; "
         "cat, dog, eel\n"
         "csv/a | 1\n"
         "csv/c | 1\n");
    says("and the rest of them", "csv_images",
         SET("path", path, "file_column", "picture", "test_fraction", "0.5", "split",
             "test"),
         "2 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 3; "
         "cat, dog, eel\n"
         "csv/b | 0\n"
         "csv/d | 2\n");
    says("with several numbers", "csv_images",
         SET("path", path, "file_column", "picture", "target", "[y, kind]"),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values f32 [2]\n"
         "csv/a | 7 3\n"
         "csv/b | 8 1\n"
         "csv/c | 9 3\n"
         "csv/d | 6 0\n");
}

/* A member of a tar file to OUT; returns how long it is there. */
static size_t
put_member(uint8_t *out, const char *name, const char *text)
{
    const size_t n = strlen(text);
    unsigned sum = 0;
    memset(out, 0, 1024);
    snprintf((char *)out, 100, "%s", name);
    snprintf((char *)out + 124, 12, "%011o", (unsigned)n & 511);
    out[156] = '0';
    memset(out + 148, ' ', 8);
    for (int i = 0; i < 512; i++)
        sum += out[i];
    snprintf((char *)out + 148, 8, "%06o", sum);
    memcpy(out + 512, text, n);
    return 1024;
}

/* Both splits of a file number their classes alike, though none has all of them. */
static void
test_shards(void)
{
    static const char *const labels[] = {"dog", "cat", "dog", "eel"};
    static uint8_t tar[16384];
    size_t n = 0;
    for (int i = 0; i < 4; i++) {
        char name[16], text[32];
        snprintf(name, sizeof name, "%c.jpg", 'a' + i);
        snprintf(text, sizeof text, "s.tar: %c.jpg", 'a' + i);
        n += put_member(tar + n, name, text);
        snprintf(name, sizeof name, "%c.cls", 'a' + i);
        n += put_member(tar + n, name, labels[i]);
    }
    char path[700];
    snprintf(path, sizeof path, "%s", write_file("s.tar", tar, n + 1024, false));
    says("members of a file", "tar_shards", SET("path", path),
         "4 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 3; "
         "cat, dog, eel\n"
         "s.tar: a.jpg | 1\n"
         "s.tar: b.jpg | 0\n"
         "s.tar: c.jpg | 1\n"
         "s.tar: d.jpg | 2\n");
    says("some of them, which have not all classes", "tar_shards",
         SET("path", path, "test_fraction", "0.3", "color", "grey"),
         "2 samples, 0 bytes; image: image u8 [1,-1,-1]; target: values i32 [] < 3; "
         "cat, dog, eel\n"
         "s.tar: b.jpg | 0\n"
         "s.tar: c.jpg | 1\n");
    says("and the others, which have not all either", "tar_shards",
         SET("path", path, "test_fraction", "0.3", "split", "test"),
         "2 samples, 0 bytes; image: image u8 [3,-1,-1]; target: values i32 [] < 3; "
         "cat, dog, eel\n"
         "s.tar: a.jpg | 1\n"
         "s.tar: d.jpg | 2\n");
}

/* What is wrong with a label is said with its line and column. */
static void
test_bad_labels(void)
{
    static const char rows[] = "n,file,a,b,c\n"
                               "0,x,1,2,k\n"
                               "\n"
                               "1,y,3,\"\n4z\",\n"
                               "2,z,5,6,m\n";
    static const struct {
        const char *target, *key, *value, *says;
    } bad[] = {
        {"[a, b]", "num_classes", "9", "bad.csv:4: column 'b': '\n4z' is not a number"},
        {"[c]", "num_classes", "9", "bad.csv:4: column 'c': the label is empty"},
        {"[a]", "num_classes", "5",
         "bad.csv:6: column 'a': the class 5, and num_classes is 5"},
        {"[a]", "classes", "['1', '5']",
         "bad.csv:4: column 'a': the class '3' is not one of the 2 of classes"},
        {"[n, file]", "num_classes", "9",
         "bad.csv: column 'file' is of the pictures, and the target too"},
    };
    const struct et_dataset_class *c = et_dataset_find("csv_images");
    char path[700];
    snprintf(path, sizeof path, "%s",
             write_file("bad.csv", rows, sizeof rows - 1, false));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct et_dataset *d = NULL;
        void *options;
        need(cx, et_options_new(cx, &c->info,
                                SET("path", path, "file_column", "file", "target",
                                    bad[i].target, bad[i].key, bad[i].value),
                                &options));
        et_status s = et_dataset_open(cx, c, options, &d);
        const char *said = take_error(cx), *at = strstr(said, "bad.csv");
        ok(s != ET_OK, "%s is refused", bad[i].target);
        is_str(at ? at : said, bad[i].says, "and it is said where");
        et_dataset_close(&d);
        et_options_free(&c->info, &options);
    }
}

static void
test_masks(void)
{
    static const char *const files[] = {"masks/images/a.b.jpg",
                                        "masks/images/c.jpg",
                                        "masks/images/d.jpg",
                                        "masks/masks/a.b.png",
                                        "masks/masks/c.png",
                                        "masks/masks/d.png",
                                        "apart2/train/images/a.jpg",
                                        "apart2/train/masks/a.png",
                                        "apart2/val/images/b.jpg",
                                        "apart2/val/masks/b.png",
                                        "ade/images/training/a.jpg",
                                        "ade/annotations/training/a.png",
                                        "ade/images/validation/b.jpg",
                                        "ade/annotations/validation/b.png",
                                        "voc/JPEGImages/a.jpg",
                                        "voc/JPEGImages/b.jpg",
                                        "voc/SegmentationClass/a.png",
                                        "voc/SegmentationClass/b.png",
                                        "voc/ImageSets/Segmentation/train.txt",
                                        "voc/ImageSets/Segmentation/val.txt",
                                        NULL};
    write_files(files);
    write_file("voc/ImageSets/Segmentation/train.txt", "a\n", 2, false);
    write_file("voc/ImageSets/Segmentation/val.txt", "b\n", 2, false);
    says("pictures with masks", "segmentation",
         SET("path", inside("masks"), "num_classes", "4", "ignore_index", "2"),
         "3 samples, 0 bytes; image: image u8 [3,-1,-1]; target: mask u8 [-1,-1] < 4\n"
         "masks/images/a.b.jpg | masks/masks/a.b.png 0->0 1->1 2->255 254->254 "
         "255->255\n"
         "masks/images/c.jpg | masks/masks/c.png 0->0 1->1 2->255 254->254 255->255\n"
         "masks/images/d.jpg | masks/masks/d.png 0->0 1->1 2->255 254->254 255->255\n");
    says("of which some are to evaluate with", "segmentation",
         SET("path", inside("masks"), "num_classes", "4", "test_fraction", "0.5",
             "split", "test", "color", "grey", "skip_zero", "true", "ignore_index",
             "1"),
         "2 samples, 0 bytes; image: image u8 [1,-1,-1]; target: mask u8 [-1,-1] < 4\n"
         "masks/images/c.jpg | masks/masks/c.png 0->255 1->255 2->1 254->253 255->254\n"
         "masks/images/d.jpg | masks/masks/d.png 0->255 1->255 2->1 254->253 "
         "255->254\n");
    says("some to train with", "segmentation",
         SET("path", inside("masks"), "num_classes", "4", "test_fraction", "0.5"),
         "1 samples, 0 bytes; image: image u8 [3,-1,-1]; target: mask u8 [-1,-1] < 4\n"
         "masks/images/a.b.jpg | masks/masks/a.b.png 0->0 1->1 2->2 254->254 "
         "255->255\n");
    says("or lie apart", "segmentation",
         SET("path", inside("apart2"), "num_classes", "3", "split", "test"),
         "1 samples, 0 bytes; image: image u8 [3,-1,-1]; target: mask u8 [-1,-1] < 3\n"
         "apart2/val/images/b.jpg | apart2/val/masks/b.png 0->0 1->1 2->2 254->254 "
         "255->255\n");
    says(
        "as in ADE20K", "segmentation",
        SET("path", inside("ade"), "layout", "ade20k", "split", "test"),
        "1 samples, 0 bytes; image: image u8 [3,-1,-1]; target: mask u8 [-1,-1] < 150\n"
        "ade/images/validation/b.jpg | ade/annotations/validation/b.png 0->255 1->0 "
        "2->1 254->253 255->255\n");
    says("or in VOC", "segmentation",
         SET("path", inside("voc"), "layout", "voc", "split", "test"),
         "1 samples, 0 bytes; image: image u8 [3,-1,-1]; target: mask u8 [-1,-1] < 21; "
         "background, aeroplane, bicycle, bird, boat, bottle, bus, car, cat, chair, "
         "cow, diningtable, dog, horse, motorbike, person, pottedplant, sheep, sofa, "
         "train, tvmonitor\n"
         "voc/JPEGImages/b.jpg | voc/SegmentationClass/b.png 0->0 1->1 2->2 254->254 "
         "255->255\n");
    says("of which some are others'", "segmentation",
         SET("path", inside("voc"), "layout", "voc", "num_classes", "5"),
         "1 samples, 0 bytes; image: image u8 [3,-1,-1]; target: mask u8 [-1,-1] < 5\n"
         "voc/JPEGImages/a.jpg | voc/SegmentationClass/a.png 0->0 1->1 2->2 254->254 "
         "255->255\n");
}

int
main(void)
{
    cx = need_ctx();
    test_folders();
    test_csv();
    test_shards();
    test_bad_labels();
    test_masks();
    et_ctx_free(&cx);
    return done();
}
