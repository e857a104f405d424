/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures on their way into a batch: JPEG files in memory, decoded, a random part of
 * each at one size, flipped at random, normalised. One thread; bench/data/decode.py
 * compares.
 *
 *     bench/data/decode FOLDER [SECONDS [SIZE]]    default 3 224 */
#include <dirent.h>
#include <string.h>

#include "bench/program.h"
#include "core/data/pipeline.h"

enum { MOST = 1024, FILE_MOST = 4 << 20 };

static struct et_sample_value file[MOST];
static int n_files;

static void
load(const char *folder, const char *name)
{
    char path[4096];
    static uint8_t block[FILE_MOST];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(block, 1, sizeof block, f) : 0;
    void *bytes = malloc(n ? n : 1);
    if (f)
        fclose(f);
    if (!bytes)
        exit(1);
    memcpy(bytes, block, n);
    file[n_files++] = (struct et_sample_value){.data = bytes, .shape = {(int64_t)n}};
}

static void
load_all(const char *folder)
{
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) && n_files < MOST;)
        if (e->d_name[0] != '.')
            load(folder, e->d_name);
    if (d)
        closedir(d);
    if (n_files == 0) {
        fprintf(stderr, "bench/data/decode: no files in %s\n", folder);
        exit(1);
    }
}

/* The transforms, and the pipeline of them. */
static struct et_data_options options;
static const struct et_option table[] = {
    ET_DATA_IMAGE_OPTIONS(struct { struct et_data_options common; }),
    {.name = NULL},
};

static void
prepare(struct et_ctx *cx, int size, struct eti_pipeline *p)
{
    char text[256];
    const struct et_field image = {.name = "image", .ndim = 3, .shape = {3, -1, -1}};
    snprintf(text, sizeof text,
             "[random_resized_crop: {size: %d}, horizontal_flip, normalize: "
             "{mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225]}]",
             size);
    must(cx, et_options_init(cx, table, &options));
    must(cx, et_options_set(cx, table, &options, "transforms", text));
    must(cx, eti_pipeline_init(cx, p, &image, 0, &options.transforms, NULL));
}

int
main(int argc, char **argv)
{
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 3, decoding = 0, rest = 0;
    int size = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 224;
    struct et_ctx *cx;
    struct eti_pipeline p;
    static struct eti_shot shot;
    struct et_error why = {0};
    if (argc < 2 || et_ctx_new(&cx) != ET_OK) {
        fprintf(stderr, "usage: bench/data/decode FOLDER [SECONDS [SIZE]]\n");
        return 1;
    }
    load_all(argv[1]);
    prepare(cx, size, &p);
    float *out = malloc((size_t)(size * size * 3) * sizeof *out);
    int64_t n = 0;
    for (double begin = now(), t = begin; out && t - begin < seconds; n++) {
        const struct et_sample_value *v = &file[n % n_files];
        if (eti_pipeline_take(&p, &shot, v, 17, n, &why) != ET_OK)
            break;
        double taken = now();
        if (eti_pipeline_run(&p, &shot, 17, n, out, &why) != ET_OK)
            break;
        decoding += taken - t;
        t = now();
        rest += t - taken;
    }
    if (why.message[0]) {
        fprintf(stderr, "bench/data/decode: %s\n", why.message);
        return 1;
    }
    printf("{\"pictures_per_second\": %.1f, \"decode_ms\": %.3f, \"rest_ms\": %.3f}\n",
           (double)n / (decoding + rest), 1e3 * decoding / (double)n,
           1e3 * rest / (double)n);
    eti_shot_free(&shot);
    et_options_release(table, &options);
    et_ctx_free(&cx);
    free(out);
    return 0;
}
