/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker says of its machine: as nvidia-smi prints it, on the wire, and from
 * somebody who says what cannot be. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "dist/worker/host.h"
#include "t/tap.h"

static const struct etd_head head = {.kind = ETD_MACHINE};

static void
test_program(void)
{
    static struct etd_host_facts h;
    etd_host_read_gpus("NVIDIA H100 80GB HBM3, 88, 61035, 81559, 580.95\n"
                       "No devices were found\n"
                       "NVIDIA A100-SXM4-80GB, [N/A], 4, 81920, 580.95\n",
                       &h);
    is_int(h.n_gpus, 2, "a line that is no GPU is passed over");
    is_str(h.gpu[0].name, "NVIDIA H100 80GB HBM3", "a GPU has a name");
    ok(h.gpu[0].util == 0.88 && h.gpu[0].total == 81559.0 * (1 << 20),
       "percent and MiB are understood");
    is_str(h.driver, "580.95", "all have one driver");
    ok(isnan(h.gpu[1].util) && h.gpu[1].used == 4.0 * (1 << 20),
       "what a GPU does not count is not known, and the rest is");
    etd_host_read_gpus("X, -1, 2, -3, 4\nY, 1, 2, 3\nZ, 1, 2, 3,\n", &h);
    ok(h.n_gpus == 1 && isnan(h.gpu[0].util) && h.gpu[0].used == 2.0 * (1 << 20) &&
           isnan(h.gpu[0].total),
       "nor is less than nothing, and a line that is too short is no GPU");
    etd_host_read_gpus("", &h);
    is_int(h.n_gpus, 0, "no answer, no GPUs");
    static const char line[] = "X, 1, 2, 3, 4\n";
    char many[40 * sizeof line] = "";
    for (int i = 0; i < 40; i++)
        memcpy(many + (size_t)i * strlen(line), line, sizeof line);
    etd_host_read_gpus(many, &h);
    is_int(h.n_gpus, ETD_HOST_GPUS, "more than there is room for are left out");
}

static void
test_wire(void)
{
    static struct etd_host_facts h, back;
    char bytes[8192];
    struct etd_frame f;
    struct etd_fault fault;
    etd_host_read_gpus("A, 50, 1, 2, 7\nB, [N/A], 1, 2, 7\n", &h);
    etd_host_look(&h);
    ok(h.uptime > 0 && h.disk_free > 0,
       "the system says how long it is up, and of disk");
    size_t n = etd_host_write(bytes, sizeof bytes, &head, &h);
    if (n == 0 || etd_read(bytes, n, &f, &fault) != ET_OK)
        bail("no frame");
    etd_host_read(&f, &back);
    ok(back.n_gpus == 2 && back.gpu[0].util == 0.5 && isnan(back.gpu[1].util) &&
           back.uptime == h.uptime && strcmp(back.driver, "7") == 0,
       "what is written is read");
}

/* Each field with a value that no other has. */
static void
test_fields(void)
{
    static struct etd_host_facts back;
    static const struct etd_host_facts h = {
        .uptime = 11,
        .disk_free = 12,
        .runs = 13,
        .run = "of runs",
        .driver = "of drivers",
        .n_gpus = 2,
        .gpu = {{"first", 0.25, 21, 31}, {"second", 0.75, 22, 32}}};
    char bytes[8192];
    struct etd_frame f;
    struct etd_fault fault;
    size_t n = etd_host_write(bytes, sizeof bytes, &head, &h);
    if (n == 0 || etd_read(bytes, n, &f, &fault) != ET_OK)
        bail("no frame");
    etd_host_read(&f, &back);
    is_int(back.uptime, h.uptime, "the time that it is up is read as it was written");
    is_int(back.disk_free, h.disk_free, "so is the room on its disk");
    is_int(back.runs, h.runs, "how many runs there are");
    is_str(back.run, h.run, "the newest one's name");
    is_str(back.driver, h.driver, "the driver");
    is_int(back.n_gpus, h.n_gpus, "how many GPUs there are");
    for (int i = 0; i < h.n_gpus; i++) {
        const struct etd_gpu *is = &back.gpu[i], *must = &h.gpu[i];
        is_str(is->name, must->name, "and of each its name,");
        ok(is->util == must->util && is->used == must->used && is->total == must->total,
           "how busy it is (%g), and how much of its memory is taken: %g of %g",
           is->util, is->used, is->total);
    }
}

/* GPUs whose names and numbers are the caller's. */
static struct etd_host_facts
claim(const char *name, double util, double used, double total, int n_used)
{
    static struct etd_host_facts back;
    char bytes[4096];
    const double one[2] = {used, used};
    struct etd_out o;
    struct etd_frame f;
    struct etd_fault fault;
    etd_begin(&o, bytes, sizeof bytes, &head, 4);
    etd_put_texts(&o, "gpu", &name, 1);
    etd_put_doubles(&o, "gpu_util", &util, 1);
    etd_put_doubles(&o, "gpu_used", one, n_used);
    etd_put_doubles(&o, "gpu_total", &total, 1);
    size_t n = etd_end(&o);
    if (n == 0 || etd_read(bytes, n, &f, &fault) != ET_OK)
        bail("no frame");
    etd_host_read(&f, &back);
    return back;
}

static void
test_claims(void)
{
    struct etd_host_facts h = claim("G\033[2J", 5, 9e9, 8e9, 1);
    is_str(h.gpu[0].name, "G\\x1b[2J",
           "a name that would move the cursor is made visible");
    ok(isnan(h.gpu[0].util) && isnan(h.gpu[0].used) && h.gpu[0].total == 8e9,
       "shares beyond the whole are not known");
    h = claim("G", -1, 1, INFINITY, 1);
    ok(isnan(h.gpu[0].util) && isnan(h.gpu[0].total),
       "nor is what is no number of bytes");
    h = claim("G", 1, 8e9, 8e9, 1);
    ok(h.gpu[0].util == 1 && h.gpu[0].used == 8e9 && h.gpu[0].total == 8e9,
       "one that is busy all the time, with all of its memory taken, is");
    h = claim("G", 0, 0, 8e9, 1);
    ok(h.gpu[0].util == 0 && h.gpu[0].used == 0, "and one that does nothing");
    h = claim("G", 0, 0, 0, 1);
    ok(h.n_gpus == 1 && isnan(h.gpu[0].total), "a GPU without memory is not known");
    h = claim("G", 0.5, 1, 2, 2);
    is_int(h.n_gpus, 0, "lists of different lengths are no GPUs");
}

/* More GPUs than names, and words that would move the cursor. */
static void
test_words(void)
{
    static struct etd_host_facts back;
    char bytes[4096];
    const double shares[] = {0.5, 0.25}, memory[] = {8e9, 4e9};
    const char *const names[] = {"A", "B"};
    for (int n_names = 1; n_names <= 2; n_names++) {
        struct etd_out o;
        struct etd_frame f;
        struct etd_fault fault;
        etd_begin(&o, bytes, sizeof bytes, &head, 6);
        etd_put_text(&o, "run", "r\033[1m");
        etd_put_text(&o, "driver", "d\033[2J");
        etd_put_texts(&o, "gpu", names, n_names);
        etd_put_doubles(&o, "gpu_util", shares, 2);
        etd_put_doubles(&o, "gpu_used", memory, 2);
        etd_put_doubles(&o, "gpu_total", memory, 2);
        size_t n = etd_end(&o);
        if (n == 0 || etd_read(bytes, n, &f, &fault) != ET_OK)
            bail("no frame");
        etd_host_read(&f, &back);
        is_int(back.n_gpus, n_names < 2 ? 0 : 2, "two GPUs with %d names are %s",
               n_names, n_names < 2 ? "none" : "two");
        is_str(back.driver, "d\\x1b[2J", "a driver's name is made visible");
        is_str(back.run, "r\\x1b[1m", "and a run's");
    }
}

int
main(void)
{
    test_program();
    test_wire();
    test_fields();
    test_claims();
    test_words();
    return done();
}
