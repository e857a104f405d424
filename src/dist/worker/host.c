/* SPDX-License-Identifier: Apache-2.0 */
/* host.c: see host.h. */
#include "config.h"

#include "dist/worker/host.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>

#include "etude/diagnostic.h"

const char *const etd_host_gpu_query[] = {
    "nvidia-smi",
    "--query-gpu=name,utilization.gpu,memory.used,memory.total,driver_version",
    "--format=csv,noheader,nounits",
    NULL,
};

/* "88"; NaN for "[N/A]", which it says of what a GPU does not count. */
static double
number(const char *text)
{
    char *end;
    double v = strtod(text, &end);
    return end > text && v >= 0 ? v : NAN;
}

void
etd_host_read_gpus(const char *text, struct etd_host_facts *out)
{
    static const double mib = 1 << 20;
    out->n_gpus = 0;
    for (const char *line = text; *line && out->n_gpus < ETD_HOST_GPUS;
         line += strcspn(line, "\n") + (line[strcspn(line, "\n")] == '\n')) {
        struct etd_gpu *g = &out->gpu[out->n_gpus];
        char util[16], used[16], total[16];
        if (sscanf(line, " %63[^,\n], %15[^,\n], %15[^,\n], %15[^,\n], %31[^,\n ]",
                   g->name, util, used, total, out->driver) != 5)
            continue;
        g->util = number(util) / 100;
        g->used = number(used) * mib;
        g->total = number(total) * mib;
        out->n_gpus++;
    }
}

void
etd_host_look(struct etd_host_facts *out)
{
    struct sysinfo system;
    struct statvfs disk;
    if (sysinfo(&system) == 0)
        out->uptime = system.uptime;
    if (statvfs(".", &disk) == 0)
        out->disk_free = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
}

size_t
etd_host_write(void *bytes, size_t room, const struct etd_head *head,
               const struct etd_host_facts *h)
{
    const char *name[ETD_HOST_GPUS];
    double util[ETD_HOST_GPUS], used[ETD_HOST_GPUS], total[ETD_HOST_GPUS];
    struct etd_out o;
    for (int i = 0; i < h->n_gpus; i++) {
        name[i] = h->gpu[i].name;
        util[i] = h->gpu[i].util;
        used[i] = h->gpu[i].used;
        total[i] = h->gpu[i].total;
    }
    etd_begin(&o, bytes, room, head, 9);
    etd_put_int(&o, "uptime_s", h->uptime);
    etd_put_int(&o, "disk_free", h->disk_free);
    etd_put_int(&o, "runs", h->runs);
    etd_put_text(&o, "run", h->run);
    etd_put_text(&o, "driver", h->driver);
    etd_put_texts(&o, "gpu", name, h->n_gpus);
    etd_put_doubles(&o, "gpu_util", util, h->n_gpus);
    etd_put_doubles(&o, "gpu_used", used, h->n_gpus);
    etd_put_doubles(&o, "gpu_total", total, h->n_gpus);
    return etd_end(&o);
}

/* Text of the other side, which is shown. */
static void
take_text(const struct etd_map *m, const char *key, char *out, size_t size)
{
    char raw[256];
    etd_get_text(m, key, raw, sizeof raw);
    et_visible(out, size, raw, strlen(raw));
}

void
etd_host_read(const struct etd_frame *f, struct etd_host_facts *out)
{
    double util[ETD_HOST_GPUS], used[ETD_HOST_GPUS], total[ETD_HOST_GPUS];
    struct etd_value list, name;
    *out = (struct etd_host_facts){
        .uptime = etd_get_int(&f->body, "uptime_s", 0),
        .disk_free = etd_get_int(&f->body, "disk_free", 0),
        .runs = etd_get_int(&f->body, "runs", 0),
    };
    take_text(&f->body, "run", out->run, sizeof out->run);
    take_text(&f->body, "driver", out->driver, sizeof out->driver);
    int n = etd_get_doubles(&f->body, "gpu_util", util, ETD_HOST_GPUS);
    if (etd_get_doubles(&f->body, "gpu_used", used, ETD_HOST_GPUS) != n ||
        etd_get_doubles(&f->body, "gpu_total", total, ETD_HOST_GPUS) != n ||
        !etd_find(&f->body, "gpu", &list) || list.type != ETD_IS_LIST ||
        list.n < (size_t)n)
        return;
    const unsigned char *at = list.at;
    for (int i = 0; i < n; i++) {
        struct etd_gpu *g = &out->gpu[i];
        etd_next(&at, f->body.end, &name);
        if (name.type == ETD_IS_TEXT)
            et_visible(g->name, sizeof g->name, name.bytes, name.n);
        /* Shares of what there is, whatever is claimed. */
        g->util = util[i] >= 0 && util[i] <= 1 ? util[i] : NAN;
        g->total = total[i] > 0 && isfinite(total[i]) ? total[i] : NAN;
        g->used = used[i] >= 0 && used[i] <= g->total ? used[i] : NAN;
    }
    out->n_gpus = n;
}
