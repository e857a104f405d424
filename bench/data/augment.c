/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures in memory on their way into a batch, by the loader on the host and by the
 * step's kernel on a device: a random part of each at one size, flipped at random,
 * jittered, normalised. Images a second; one thread on a CPU.
 *
 *     bench/data/augment [DEVICE [SECONDS [SIZE]]]    default cpu 2 32 */
#include "bench/program.h"
#include "etude/data.h"
#include "etude/graph.h"

enum { BATCH = 128 };

static struct et_ctx *cx;
static struct et_device *dev;

static const struct {
    const char *name, *list;
} rows[] = {
    {"crop, flip", "[random_crop: {size: %d, padding: 4}, horizontal_flip]"},
    {"resized crop, flip", "[random_resized_crop: {size: %d}, horizontal_flip]"},
    {"rotation", "[random_crop: {size: %d}, random_rotation: {degrees: 15}]"},
    {"resized crop, jitter",
     "[random_resized_crop: {size: %d}, color_jitter: {brightness: 0.4, contrast: 0.4, "
     "saturation: 0.4, hue: 0.1}]"},
};

static void *
options_of(const struct et_dataset_class *c, const char *list, int size, bool on_device)
{
    char text[256], number[16];
    void *o;
    must(cx, et_alloc(cx, c->info.options_size, &o));
    must(cx, et_options_init(cx, c->info.options, o));
    snprintf(number, sizeof number, "%d", size);
    must(cx, et_options_set(cx, c->info.options, o, "resolution", number));
    must(cx, et_options_set(cx, c->info.options, o, "num_unique", "1024"));
    must(cx, et_options_set(cx, c->info.options, o, "workers", "0"));
    must(cx, et_options_set(cx, c->info.options, o, "transforms_on",
                            on_device ? "device" : "host"));
    snprintf(text, sizeof text, list, size);
    must(cx, et_options_set(cx, c->info.options, o, "transforms", text));
    ((struct et_data_options *)o)->batch_size = BATCH;
    return o;
}

/* Images a second. */
static double
measure(const char *list, int size, bool on_device, double seconds)
{
    const struct et_dataset_class *c = et_dataset_find("synthetic_images");
    void *o = options_of(c, list, size, on_device);
    struct et_dataset *data;
    struct et_loader *loader;
    struct et_graph *g;
    const struct et_batch *b;
    int64_t n = 0;
    const struct et_loader_config config = {.seed = 17, .train = true, .dev = dev};
    must(cx, et_dataset_open(cx, c, o, &data));
    must(cx, et_loader_new(cx, data, &config, &loader));
    must(cx, et_graph_new(cx, dev, &g));
    double begin = now();
    while (now() - begin < seconds) {
        must(cx, et_loader_next(cx, loader, &b));
        if (!b)
            continue;
        struct et_tensor *x = et_batch_x(g, b);
        if (on_device)
            must(cx, et_eval(g, &x, 1));
        et_graph_reset(g);
        n += b->n_samples;
        et_loader_release(loader, b);
    }
    double took = now() - begin;
    et_graph_free(&g);
    et_loader_free(&loader);
    et_dataset_close(&data);
    et_options_release(c->info.options, o);
    et_free(cx, o);
    return (double)n / took;
}

int
main(int argc, char **argv)
{
    double seconds = argc > 2 ? strtod(argv[2], NULL) : 2;
    int size = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 32;
    if (et_ctx_new(&cx) != ET_OK)
        return 1;
    must(cx, et_device_open(cx, argc > 1 ? argv[1] : "cpu", 0, 1, &dev));
    printf("%-24s %12s %12s\n", "images/s", "host", "device");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf("%-24s %12.0f %12.0f\n", rows[i].name,
               measure(rows[i].list, size, false, seconds),
               measure(rows[i].list, size, true, seconds));
    et_device_close(&dev);
    et_ctx_free(&cx);
    return 0;
}
