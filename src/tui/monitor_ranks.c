/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_ranks.c: the ranks beside each other, and who holds the others back.
 *
 * A rank's own time is its time outside waiting for others. It is slow when that has
 * been over 1.15 times the median of all ranks' newest, also without the part in which
 * others had the processor (queue_ms), for as many of its newest
 * samples as 20 batches have; its cause is the part of its time that is furthest over
 * the median of that part. Where that is computing, and the processor computes, what
 * the process used of it tells whether it did compute: a rank that takes longer and has
 * not used more stood still, for its files or because others had the processor. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/format.h"
#include "tui/monitor.h"

static const double SLOW = 1.15;     /* of the median: a straggler */
static const double THROTTLED = 0.9; /* of the median clock */
static const double WORKS = 1.05;    /* of the median use of processors: it computes */
static const double LOADED = 0.95;   /* of the machine's processors are busy */
static const double READS = 1.5;     /* of the median, and */
static const double LEAST_MB_S = 1;  /* this much: its files are worth a word */
enum { SAMPLES = 3 }; /* of own time: a second each, in which 20 batches mostly fit */

static const char *const order_names[TUI_ORDERS] = {"rank", "own", "util", "mem"};

const char *
tui_rank_order_name(enum tui_rank_order order)
{
    return order_names[order];
}

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- who is slow ---- */

static bool
has_been_slow(const struct etd_part *p, double median)
{
    for (int i = ETD_TRAIL - SAMPLES; i < ETD_TRAIL; i++)
        if (!((double)p->trail[i] > SLOW * median))
            return false;
    return true;
}

/* MB a second of files. */
static double
files_of(const struct etd_part *p)
{
    double read = etd_part_get(p, "read_mb_s"), write = etd_part_get(p, "write_mb_s");
    return isnan(read) ? write : isnan(write) ? read : read + write;
}

/* A median of files_of. */
static double
median_files(const struct etd_model *m)
{
    double v[ETD_RANKS];
    int n = 0;
    for (int i = 0; i < m->n_ranks && n < ETD_RANKS; i++) {
        v[n] = files_of(&m->rank[i]);
        n += !isnan(v[n]);
    }
    qsort(v, (size_t)n, sizeof *v, by_size);
    return n ? v[n / 2] : NAN;
}

/* Why its computing takes longer. */
static const char *
computing(const struct etd_model *m, const struct etd_part *p)
{
    double used = etd_part_get(p, "cpu_util"), host = NAN, files = files_of(p);
    if (etd_part_get(p, "sm_mhz") < THROTTLED * etd_step_median(m, "sm_mhz"))
        return "its clock, which is throttled";
    if (!isnan(etd_part_get(p, "gpu_util")) || isnan(used) ||
        used >= WORKS * etd_step_median(m, "cpu_util"))
        return "its computing";
    for (int i = 0; i < m->n_ranks; i++) /* one rank of a machine says it */
        host = fmax(host, etd_part_get(&m->rank[i], "host_cpu"));
    if (files > LEAST_MB_S && files > READS * median_files(m))
        return "its reading and writing";
    return host >= LOADED ? "the load of its machine"
                          : "its computing, which stands still";
}

static void
find_cause(const struct etd_model *m, struct tui_rank *r)
{
    static const struct {
        const char *number, *words;
    } causes[] = {
        {"data_ms", "its dataloader"},
        {"h2d_ms", "its copies to the device"},
        {ETD_COMPUTE, NULL},
        {"forward_ms", NULL},
        {"backward_ms", NULL},
        {"optimizer_ms", "its optimizer"},
        {"hooks_ms", "its algorithms"},
        {"save_ms", "its checkpoints"},
    };
    double most = 0;
    snprintf(r->cause, sizeof r->cause, "not known");
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        double grew = etd_step_number(r->part, causes[i].number) -
                      etd_step_median(m, causes[i].number);
        if (!(grew > most))
            continue;
        most = grew;
        snprintf(r->cause, sizeof r->cause, "%s",
                 causes[i].words ? causes[i].words : computing(m, r->part));
    }
}

/* ---- order ---- */

static double
use_of(const struct etd_part *p)
{
    double gpu = etd_part_get(p, "gpu_util");
    return isnan(gpu) ? etd_part_get(p, "cpu_util") : gpu;
}

static double
memory_of(const struct etd_part *p)
{
    double gb = etd_part_get(p, "mem_gb");
    return isnan(gb) ? etd_part_get(p, "rss_gb") : gb;
}

static int
compare(double a, double b, const struct tui_rank *x, const struct tui_rank *y)
{
    a = isnan(a) ? -1 : a;
    b = isnan(b) ? -1 : b;
    return a < b ? 1 : a > b ? -1 : x->number - y->number;
}

static int
by_number(const void *a, const void *b)
{
    return ((const struct tui_rank *)a)->number - ((const struct tui_rank *)b)->number;
}

static int
by_own(const void *a, const void *b)
{
    const struct tui_rank *x = a, *y = b;
    return compare(x->own_ms, y->own_ms, x, y);
}

static int
by_use(const void *a, const void *b)
{
    const struct tui_rank *x = a, *y = b;
    return compare(use_of(x->part), use_of(y->part), x, y);
}

static int
by_memory(const void *a, const void *b)
{
    const struct tui_rank *x = a, *y = b;
    return compare(memory_of(x->part), memory_of(y->part), x, y);
}

et_status
tui_ranks_gather(const struct tui_view *v)
{
    static int (*const orders[TUI_ORDERS])(const void *, const void *) = {
        by_number, by_own, by_use, by_memory};
    struct tui_monitor *m = v->m;
    const struct etd_model *model = v->model;
    if (model->n_ranks > m->rank_room) {
        void *block;
        ET_TRY(et_alloc(v->app->cx, (size_t)model->n_ranks * sizeof *m->rank, &block));
        et_free(v->app->cx, m->rank);
        m->rank = block;
        m->rank_room = model->n_ranks;
    }
    m->median_ms = etd_step_median(model, "own_ms");
    m->n_ranks = m->n_slow = 0;
    for (int i = 0; i < model->n_ranks; i++) {
        const struct etd_part *p = &model->rank[i];
        if (!*p->name && p->n == 0)
            continue; /* it has said nothing yet */
        struct tui_rank *r = &m->rank[m->n_ranks++];
        *r = (struct tui_rank){
            .number = i, .part = p, .own_ms = etd_part_get(p, "own_ms")};
        r->over = r->own_ms / m->median_ms;
        r->is_slow = model->n_ranks > 1 && has_been_slow(p, m->median_ms);
        m->n_slow += r->is_slow;
        if (r->is_slow)
            find_cause(model, r);
    }
    if (m->n_ranks > 1)
        qsort(m->rank, (size_t)m->n_ranks, sizeof *m->rank, orders[m->order]);
    m->slowest = -1;
    for (int i = 0; i < m->n_ranks; i++)
        if (m->rank[i].is_slow &&
            (m->slowest < 0 || m->rank[i].own_ms > m->rank[m->slowest].own_ms))
            m->slowest = i;
    return ET_OK;
}

/* ---- drawing ---- */

/* "61/80G"; without a total "1.2G", "84M". */
static const char *
memory_text(double gb, double all, char buf[TUI_NUMBER], bool wide)
{
    if (isnan(gb))
        snprintf(buf, TUI_NUMBER, "-");
    else if (!isnan(all))
        snprintf(buf, TUI_NUMBER, wide ? "%.0f/%.0f" : "%.0f/%.0fG", gb, all);
    else
        tui_scaled(gb * 1e9, buf);
    return buf;
}

static const char *
percent_text(double v, char buf[TUI_NUMBER])
{
    if (isnan(v))
        snprintf(buf, TUI_NUMBER, "-");
    else
        snprintf(buf, TUI_NUMBER, "%.0f%%", v * 100);
    return buf;
}

static void
put_number(const struct tui_view *v, const struct tui_pane *p, int y,
           const struct tui_rank *r, int width)
{
    char text[TUI_NUMBER];
    snprintf(text, sizeof text, "%d", r->number);
    if (r->is_slow)
        tui_put_ch(p, y, 0,
                   v->app->config.glyphs->is_ascii ? '!'
                                                   : v->app->config.glyphs->warning,
                   TUI_WARN, 0);
    tui_put_end(p, y, 1 + width, r->is_slow ? TUI_WARN : TUI_TEXT, text);
}

int
tui_rank_digits(const struct etd_model *m)
{
    const int n = m->n_ranks - 1;
    return n >= 1000 ? 4 : n >= 100 ? 3 : n >= 10 ? 2 : 1;
}

/* ---- columns ---- */

/* What the line of a rank says, by the key `v`: two gauges, and three numbers where
 * there is room. */
static const struct columns {
    const char *words[3];           /* above the gauges and the number behind them */
    const char *first, *second;     /* the gauges' titles, where there is room */
    const char *numbers[3];         /* above the numbers */
    const char *use, *used, *total; /* of the gauges: 0 to 1; GB, and of how many */
    struct {
        const char *number, *unit; /* "B/s": the number is in millions */
    } number[3];
} columns[TUI_COLUMN_SETS] = {
    [TUI_COLUMNS_GPU] =
        {
            .words = {"util", "", "mem"},
            .first = "gpu util",
            .second = "memory GB",
            .numbers = {"temp", "power", "sm clk"},
            .use = "gpu_util",
            .used = "mem_gb",
            .total = "mem_total_gb",
            .number = {{"temp_c", "C"}, {"power_w", "W"}, {"sm_mhz", "MHz"}},
        },
    [TUI_COLUMNS_HOST] =
        {
            .words = {"cpu", "", "ram"},
            .first = "cpu",
            .second = "ram",
            .numbers = {"data", "algo", "speed"},
            .use = "cpu_util",
            .used = "rss_gb",
            .total = "ram_total_gb",
            .number = {{"data_ms", "ms"}, {"hooks_ms", "ms"}, {"ba_per_s", "ba/s"}},
        },
    [TUI_COLUMNS_IO] =
        {
            .words = {"data", "read", "net"},
            .first = "waits for data",
            .second = "waits for ranks",
            .numbers = {"read", "write", "net B/s"},
            .number = {{"read_mb_s", "B/s"},
                       {"write_mb_s", "B/s"},
                       {"net_mb_s", "B/s"}},
        },
};

bool
tui_run_has_gpu(const struct etd_model *m)
{
    for (int i = 0; i < m->n_ranks; i++)
        if (!isnan(etd_part_get(&m->rank[i], "gpu_util")))
            return true;
    return false;
}

enum tui_rank_columns
tui_rank_columns_shown(const struct tui_monitor *m, const struct etd_model *model)
{
    return m->columns == TUI_COLUMNS_GPU && !tui_run_has_gpu(model) ? TUI_COLUMNS_HOST
                                                                    : m->columns;
}

/* Number NAME of the machine that R is on. The machine's first rank reports it: the
 * nearest one up to R that has it. */
static double
host_number(const struct etd_model *m, const struct tui_rank *r, const char *name)
{
    for (int i = r->number; i >= 0; i--) {
        double v = etd_part_get(&m->rank[i], name);
        if (!isnan(v))
            return v;
    }
    return NAN;
}

static const char *
number_text(const struct etd_part *q, const char *name, const char *unit,
            char buf[TUI_NUMBER])
{
    double value = etd_part_get(q, name);
    if (isnan(value))
        snprintf(buf, TUI_NUMBER, "-");
    else if (strcmp(unit, "B/s") == 0)
        tui_scaled(round(value * 10) * 1e5, buf);
    else
        snprintf(buf, TUI_NUMBER,
                 value < 9.95 && strcmp(unit, "C") != 0 ? "%.1f%s" : "%.0f%s", value,
                 unit);
    return buf;
}

/* The gauges of R: A, and B with the text behind it. */
static void
gauges_of(const struct tui_view *v, const struct tui_rank *r, bool wide, double *a,
          double *b, char text[TUI_NUMBER])
{
    const enum tui_rank_columns set = tui_rank_columns_shown(v->m, v->model);
    const struct columns *c = &columns[set];
    if (set == TUI_COLUMNS_IO) {
        double wait = etd_part_get(r->part, "wait_ms"), all = r->own_ms + wait;
        *a = etd_part_get(r->part, "data_ms") / all;
        *b = wait / all;
        percent_text(*b, text);
        return;
    }
    double used = etd_part_get(r->part, c->used);
    double total = host_number(v->model, r, c->total);
    *a = etd_part_get(r->part, c->use);
    *b = used / total;
    /* A process's share of its machine is told by the gauge; a GPU's memory is its
     * own. */
    memory_text(used, set == TUI_COLUMNS_GPU ? total : NAN, text, wide);
}

/* Where things stand on a brief line, " 0 [#########] 97% [#####.] 61/80G  98ms". */
struct brief {
    int use, use_w;       /* the first gauge */
    int percent;          /* where its text ends */
    int memory, memory_w; /* the second gauge; no columns: the set has one gauge only */
    int used, own;        /* where texts end */
};

static struct brief
brief_of(const struct tui_view *v, int w)
{
    enum { TEXTS = 22, NARROW = 40 }; /* columns of all texts; below: one gauge */
    struct brief b = {.use = 2 + tui_rank_digits(v->model), .own = w - 1};
    const int spare = w - b.use - TEXTS;
    b.use_w = w < NARROW ? spare : (spare + 3) / 2;
    b.percent = b.use + b.use_w + 4;
    b.memory = b.percent + 1;
    b.memory_w = w < NARROW ? 0 : spare - b.use_w;
    b.used = b.own - 8;
    return b;
}

static void
put_brief(const struct tui_view *v, const struct tui_pane *p, int y,
          const struct tui_rank *r)
{
    const enum tui_rank_columns set = tui_rank_columns_shown(v->m, v->model);
    const struct brief at = brief_of(v, p->w);
    char text[TUI_NUMBER], memory[TUI_NUMBER];
    double use, used;
    gauges_of(v, r, false, &use, &used, memory);
    put_number(v, p, y, r, tui_rank_digits(v->model));
    tui_gauge(p, y, at.use, at.use_w, use, false);
    tui_put_end(p, y, at.percent, TUI_TEXT, percent_text(use, text));
    if (set == TUI_COLUMNS_IO) { /* what is read, and what the net carries */
        if (at.memory_w > 0)
            tui_put_end(p, y, at.memory + at.memory_w, TUI_TEXT,
                        number_text(r->part, "read_mb_s", "B/s", text));
        tui_put_end(p, y, at.used, TUI_TEXT,
                    number_text(r->part, "net_mb_s", "B/s", text));
    } else {
        if (at.memory_w > 0)
            tui_gauge(p, y, at.memory, at.memory_w, used, true);
        tui_put_end(p, y, at.used,
                    at.memory_w == 0 && used > 0.85 ? TUI_WARN : TUI_TEXT, memory);
    }
    tui_put_end(p, y, at.own, r->is_slow ? TUI_WARN : TUI_TEXT,
                tui_ms(r->own_ms, text));
}

/* Where things stand on a line of the widest screens, counted from behind the rank's
 * number: gauges and the state begin there, the others end. */
enum { MEMORY = 28, USED = 55, OWN = 88, SKEW = 96, STATE = 99 };
static const int number_ends[] = {61, 68, 78};

/* One line of the widest screens. */
static void
put_full(const struct tui_view *v, const struct tui_pane *p, int y,
         const struct tui_rank *r)
{
    const struct columns *c = &columns[tui_rank_columns_shown(v->m, v->model)];
    char text[TUI_NUMBER];
    int d = tui_rank_digits(v->model), x = 2 + d;
    double a, b;
    gauges_of(v, r, true, &a, &b, text);
    put_number(v, p, y, r, d);
    tui_gauge(p, y, x + MEMORY, 20, b, c->used != NULL);
    tui_put_end(p, y, x + USED, TUI_TEXT, text);
    tui_gauge(p, y, x, 22, a, false);
    tui_put_end(p, y, x + 26, TUI_TEXT, percent_text(a, text));
    for (int i = 0; i < 3; i++)
        tui_put_end(p, y, x + number_ends[i], TUI_TEXT,
                    number_text(r->part, c->number[i].number, c->number[i].unit, text));
    snprintf(text, sizeof text, "%.1fms", r->own_ms);
    tui_put_end(p, y, x + OWN, TUI_TEXT, isnan(r->own_ms) ? "-" : text);
    snprintf(text, sizeof text, "%+.1f%%", (r->over - 1) * 100);
    tui_put_end(p, y, x + SKEW, TUI_TEXT, isnan(r->over) ? "-" : text);
    if (r->is_slow)
        tui_putf(p, y, x + STATE, TUI_WARN, "slow: %s", r->cause);
    else
        tui_put(p, y, x + STATE, TUI_TEXT, isnan(r->own_ms) ? "-" : "ok");
}

/* "min 97ms  median 98ms  max 119ms": where not all have a line. */
static void
put_summary(const struct tui_view *v, const struct tui_pane *p, int y, int hidden)
{
    char a[TUI_NUMBER], b[TUI_NUMBER], c[TUI_NUMBER];
    double least = INFINITY, most = -INFINITY;
    for (int i = 0; i < v->m->n_ranks; i++) {
        least = fmin(least, v->m->rank[i].own_ms);
        most = fmax(most, v->m->rank[i].own_ms);
    }
    tui_putf(p, y, 1, TUI_DIM, "%d more   own time: min %s  median %s  max %s", hidden,
             tui_ms(least, a), tui_ms(v->m->median_ms, b), tui_ms(most, c));
}

/* The sum over all ranks of a number; NaN: no rank says it. *N: how many do. */
static double
sum_of(const struct tui_view *v, const char *name, int *n)
{
    double sum = 0;
    *n = 0;
    for (int i = 0; i < v->m->n_ranks; i++) {
        double one = etd_part_get(v->m->rank[i].part, name);
        if (isnan(one))
            continue;
        sum += one;
        ++*n;
    }
    return *n ? sum : NAN;
}

/* "   net 0.2 GB/s" */
static int
put_rate(const struct tui_pane *p, int y, int x, const char *name, double mb_s)
{
    char a[TUI_NUMBER];
    return isnan(mb_s) ? 0
                       : tui_putf(p, y, x, TUI_TEXT, "   %s %s/s", name,
                                  tui_bytes(round(mb_s * 10) * 1e5, a));
}

/* The machines: of several the mean, or the sum. */
static void
put_host(const struct tui_view *v, const struct tui_pane *p, int y)
{
    char a[TUI_NUMBER];
    int hosts, ranks;
    double cpu = sum_of(v, "host_cpu", &hosts) / hosts, net = 0;
    double ram = sum_of(v, "ram_gb", &hosts), rss = sum_of(v, "rss_gb", &ranks);
    int x = 1 + tui_put(p, y, 1, TUI_DIM, hosts > 1 ? "hosts" : "host");
    if (!isnan(cpu)) {
        x += tui_put(p, y, x + 2, TUI_DIM, "cpu") + 3;
        tui_gauge(p, y, x, 22, cpu, false);
        x += 22 + tui_putf(p, y, x + 23, TUI_TEXT, "%s", percent_text(cpu, a)) + 1;
    }
    if (hosts > 0) {
        double all = sum_of(v, "ram_total_gb", &hosts);
        x += tui_put(p, y, x + 3, TUI_DIM, "ram") + 4;
        tui_gauge(p, y, x, 20, ram / all, true);
        x += 20;
        x += tui_putf(p, y, x + 1, TUI_TEXT, "%.0f/%.0f GB", ram, all) + 1;
    } else if (!isnan(rss)) {
        x += 3;
        x += tui_putf(p, y, x, TUI_TEXT, "ram of all ranks %.*f GB", rss < 10 ? 2 : 1,
                      rss);
    } else if (isnan(cpu)) {
        tui_put(p, y, x + 2, TUI_DIM, v->is_over ? "-" : "not said yet");
    }
    x += put_rate(p, y, x, "disk read", sum_of(v, "read_mb_s", &ranks));
    for (int i = 0; i < v->m->n_ranks; i++) { /* one rank of each machine */
        const struct etd_part *q = v->m->rank[i].part;
        double one = etd_part_get(q, "net_mb_s");
        net += isnan(etd_part_get(q, "host_cpu")) || isnan(one) ? 0 : one;
    }
    put_rate(p, y, x, "net", hosts > 0 ? net : NAN);
}

/* The words above the columns of a brief line that begins at X; the title of all ends
 * at TITLE. */
static void
put_words(const struct tui_view *v, const struct tui_pane *p, int x, int w, int title)
{
    const struct columns *c = &columns[tui_rank_columns_shown(v->m, v->model)];
    const struct brief at = brief_of(v, w);
    char word[24];
    snprintf(word, sizeof word, " %s ", c->words[0]);
    if (x > 0 || at.percent + 1 - tui_width(word) >= title) /* behind "ranks" */
        tui_put_end(p, 0, x + at.percent + 1, TUI_DIM, word);
    if (c->words[1][0] && at.memory_w > 0) {
        snprintf(word, sizeof word, " %s ", c->words[1]);
        tui_put_end(p, 0, x + at.memory + at.memory_w + 1, TUI_DIM, word);
    }
    snprintf(word, sizeof word, " %s ", c->words[2]);
    tui_put_end(p, 0, x + at.used + 1, TUI_DIM, word);
    tui_put_end(p, 0, x + at.own + 1, TUI_DIM, " own ");
}

static void
end_word(char *line, int end, const char *word)
{
    memcpy(line + end - strlen(word), word, strlen(word));
}

/* The title of the widest screens: each word above what it names. */
static void
put_full_title(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    enum { FROM = 3, FIRST = 13 }; /* where the title begins; behind "ranks" */
    const struct columns *c = &columns[tui_rank_columns_shown(v->m, v->model)];
    const int x = 2 + tui_rank_digits(v->model);
    char line[160] = "";
    memset(line, ' ', (size_t)(x + STATE));
    end_word(line, FROM + 5, "ranks");
    end_word(line, FIRST + (int)strlen(c->first), c->first);
    end_word(line, x + MEMORY + (int)strlen(c->second), c->second);
    for (int i = 0; i < 3; i++)
        end_word(line, x + number_ends[i], c->numbers[i]);
    end_word(line, x + OWN, "own time");
    end_word(line, x + SKEW, "skew");
    end_word(line, x + STATE + 5, "state");
    tui_title(p, 0, line + FROM, focus);
}

static void
put_title(const struct tui_view *v, const struct tui_pane *p, bool focus, bool full,
          int beside)
{
    if (full) {
        put_full_title(v, p, focus);
        return;
    }
    tui_title(p, 0, v->m->order == TUI_BY_RANK ? "ranks" : "ranks by", focus);
    int end = 9;
    if (v->m->order != TUI_BY_RANK)
        end = 12 + tui_putf(p, 0, 12, TUI_DIM, "%s ", order_names[v->m->order]);
    for (int i = 0; i < beside && v->m->n_ranks > 0; i++)
        put_words(v, p, i * (p->w / beside), p->w / beside, end);
}

void
tui_monitor_ranks(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    struct tui_monitor *m = v->m;
    int beside = m->layout.rank_columns > 0 ? m->layout.rank_columns : 1;
    bool full = tui_size_of(p->grid->rows, p->grid->cols) == TUI_FULL && p->w >= 120;
    int rows = p->h - 1 - full;
    put_title(v, p, focus, full, beside);
    if (full && p->h > 1)
        put_host(v, p, p->h - 1);
    if (m->n_ranks == 0 && rows > 0) {
        tui_put(p, 1, 1, TUI_DIM,
                tui_monitor_empty(v, v->is_over
                                         ? "it ended before any rank said how it was"
                                         : "no rank has said how it is yet"));
        return;
    }
    bool all = m->n_ranks <= rows * beside;
    int cells = all ? m->n_ranks : (rows - 1) * beside;
    if (!all && rows > 0)
        put_summary(v, p, p->h - 1 - full, m->n_ranks - cells);
    int lines = all ? (m->n_ranks + beside - 1) / beside : rows - 1;
    tui_list_show(&m->ranks, m->n_ranks, cells);
    for (int i = 0; i < cells && m->ranks.top + i < m->n_ranks; i++) {
        int column = lines > 0 ? i / lines : 0, w = p->w / beside;
        struct tui_pane cell =
            tui_pane_part(p, 1 + (lines > 0 ? i % lines : 0), column * w, 1, w);
        const struct tui_rank *r = &m->rank[m->ranks.top + i];
        if (full)
            put_full(v, &cell, 0, r);
        else
            put_brief(v, &cell, 0, r);
        if (focus && m->ranks.top + i == m->ranks.at)
            tui_mark(&cell, 0, 1, tui_rank_digits(v->model), TUI_REVERSE);
    }
}
