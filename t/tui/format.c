/* SPDX-License-Identifier: Apache-2.0 */
/* format.c: numbers, times and sizes as screens show them, on both sides of every
 * change of form; what metrics are called. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "t/tap.h"
#include "tui/format.h"
#include "tui/metric.h"

struct shown {
    double v;
    const char *text;
};

/* FORMAT writes each of OF [N] as its text. */
static void
are_shown(const char *(*format)(double, char *), const struct shown *of, size_t n,
          const char *what)
{
    char buf[TUI_NUMBER];
    for (size_t i = 0; i < n; i++)
        is_str(format(of[i].v, buf), of[i].text, "%s: %.10g", what, of[i].v);
}
#define ARE_SHOWN(format, of, what) are_shown(format, of, sizeof of / sizeof *of, what)

static void
test_numbers(void)
{
    static const struct shown values[] = {
        {0.8123, ".8123"},
        {-0.5, "-.5000"},
        {0, ".0000"},
        {0.99996, "1.0000"},
        {1.1022, "1.1022"},
        {0.001, ".0010"},
        {0.00099, "9.9e-4"},
        {-0.00099, "-9.9e-4"},
        {1.5e-5, "1.5e-5"},
        {9.9994, "9.9994"},
        {9.9996, "10.000"},
        {99.994, "99.994"},
        {99.996, "100.00"},
        {999.94, "999.94"},
        {999.96, "1,000"},
        {-999.96, "-1000"},
        {1612.8, "1,613"},
        {17210.3, "17,210"},
        {999999.4, "999,999"},
        {999999.6, "1.0e6"},
        {-1e6, "-1.0e6"},
        {39433096, "3.9e7"},
        {2.5e10, "2.5e10"},
        {(double)NAN, "-"},
        {(double)INFINITY, "inf"},
        {-(double)INFINITY, "-inf"},
    };
    static const struct shown rates[] = {
        {1612.8, "1,613"},
        {99.96, "100"},
        {99.94, "99.9"},
        {84.21, "84.2"},
        {9.996, "10.0"},
        {9.99, "9.99"},
        {99999999.4, "99,999,999"},
        {1e8, "100M"},
        {40711548700.0, "41G"},
        {(double)NAN, "-"},
        {(double)INFINITY, "-"},
    };
    static const struct shown scaled[] = {
        {0.5, "0.5"},      {5, "5"},          {999.4, "999.4"},  {999.6, "1.0K"},
        {9949, "9.9K"},    {9960, "10K"},     {999.4e3, "999K"}, {999.6e3, "1.0M"},
        {7833600, "7.8M"}, {-7.8e6, "-7.8M"}, {3e9, "3.0G"},     {4e12, "4.0T"},
        {5e15, "5.0P"},    {6e18, "6.0E"},    {7e21, "7000E"},   {(double)NAN, "-"},
    };
    static const struct shown sizes[] = {
        {0, "0 B"},          {999, "999 B"},      {999.6, "1.0 KB"},
        {9.94e3, "9.9 KB"},  {9.96e3, "10 KB"},   {1.2e6, "1.2 MB"},
        {999.4e6, "999 MB"}, {999.6e6, "1.0 GB"}, {999.6e9, "1.0 TB"},
        {2e15, "2000 TB"},
    };
    ARE_SHOWN(tui_value, values, "a value");
    ARE_SHOWN(tui_rate, rates, "a rate");
    ARE_SHOWN(tui_scaled, scaled, "a number with its scale");
    ARE_SHOWN(tui_bytes, sizes, "bytes");
    char buf[TUI_NUMBER];
    is_str(tui_count(0, buf), "0", "a count of none");
    is_str(tui_count(999, buf), "999", "a count below a thousand");
    is_str(tui_count(1000, buf), "1,000", "a count of a thousand");
    is_str(tui_count(1234567, buf), "1,234,567", "a count of millions");
    is_str(tui_count(-1, buf), "-", "a count that is not known");
}

static void
test_times(void)
{
    static const struct shown durations[] = {
        {0, "0s"}, {0.7, "<1s"}, {1, "1s"}, {1.7, "1s"}, {776, "12m56s"},
    };
    static const struct shown spans[] = {
        {-1, "-"},       {0.048, "48ms"},    {0.9994, "999ms"}, {0.9996, "1.0s"},
        {9.12, "9.1s"},  {59.94, "59.9s"},   {59.96, "1m00s"},  {60, "1m00s"},
        {776, "12m56s"}, {(double)NAN, "-"},
    };
    static const struct shown elapsed[] = {
        {-5, "00:00:00"},      {404, "00:06:44"},          {86399, "23:59:59"},
        {86400, "1d00:00:00"}, {86400 + 61, "1d00:01:01"},
    };
    static const struct shown ms[] = {
        {0.84, "0.8ms"},  {9.94, "9.9ms"},    {9.96, "10ms"},  {98.2, "98ms"},
        {999.4, "999ms"}, {999.6, "1.00s"},   {1234, "1.23s"}, {9999.6, "10.0s"},
        {61000, "61.0s"}, {(double)NAN, "-"},
    };
    ARE_SHOWN(tui_duration, durations, "a duration");
    ARE_SHOWN(tui_span, spans, "a span");
    ARE_SHOWN(tui_elapsed, elapsed, "what has elapsed");
    ARE_SHOWN(tui_ms, ms, "milliseconds");
    char buf[TUI_NUMBER];
    const double t = 1700489002.5; /* 2023-11-20 14:03:22.5 */
    setenv("TZ", "UTC", 1);
    tzset();
    is_str(tui_clock(t, 0, buf), "14:03", "the time of a day has hours and minutes");
    is_str(tui_clock(t, 2, buf), "14:03:22", "and seconds where it is asked for them");
    is_str(tui_clock(t, 5, buf), "14:03:22.500", "and their parts");
    is_str(tui_clock(0, 2, buf), "--:--", "and is not known of no time");
    is_str(tui_day(t, buf), "11-20", "a day is month and day");
    is_str(tui_day(1704067199, buf), "12-31", "to the last second of a year");
    is_str(tui_day(1704067200, buf), "01-01", "from the first of the next one");
    is_str(tui_day(0, buf), "--", "and is not known of no time");
    setenv("TZ", "XYZ-5", 1); /* five hours east */
    tzset();
    is_str(tui_clock(t, 0, buf), "19:03", "times are local");
    is_str(tui_day(t + 6 * 3600, buf), "11-21", "and days are");
}

static void
test_zeros(void)
{
    char buf[64];
    is_str(tui_without_zeros("Accuracy 0.8123 (+0.0200)", buf, sizeof buf),
           "Accuracy .8123 (+.0200)",
           "numbers in a text lose the zero before the point");
    is_str(tui_without_zeros("10.5 0.5 0. -0.25 v0.5 0", buf, sizeof buf),
           "10.5 .5 0. -.25 v0.5 0", "and no other one");
    is_str(tui_without_zeros("0.12345", buf, 4), ".12", "as far as there is room");
}

/* ---- metrics ---- */

static void
test_metrics(void)
{
    static const struct {
        const char *name, *label, *text; /* of 0.25 */
        enum tui_quantity of;
        bool from_zero, can_burst;
    } metrics[] = {
        {"loss/train/total", "loss/train", ".2500", TUI_OF_NUMBERS, false, true},
        {"loss/train/aux", "loss/train/aux", ".2500", TUI_OF_NUMBERS, false, true},
        {"metrics/train/Accuracy", "accuracy (train)", ".2500", TUI_OF_PARTS, false,
         false},
        {"metrics/eval/Accuracy", "accuracy", ".2500", TUI_OF_PARTS, false, false},
        {"metrics/eval_ema/Accuracy", "accuracy (eval_ema)", ".2500", TUI_OF_PARTS,
         false, false},
        {"metrics/test/Accuracy", "accuracy (test)", ".2500", TUI_OF_PARTS, false,
         false},
        {"metrics/train/CrossEntropy", "ce (train)", ".2500", TUI_OF_NUMBERS, false,
         true},
        {"metrics/eval/CrossEntropy", "ce", ".2500", TUI_OF_NUMBERS, false, true},
        {"metrics/eval/LanguageCrossEntropy", "ce", ".2500", TUI_OF_NUMBERS, false,
         true},
        {"metrics/eval/LanguagePerplexity", "ppl", ".2500", TUI_OF_NUMBERS, false,
         true},
        {"metrics/eval/MIoU", "eval/MIoU", ".2500", TUI_OF_NUMBERS, false, false},
        {"lr-DecoupledSGDW/group0", "lr", ".2500", TUI_OF_NUMBERS, true, false},
        {"l2_norm/grad/global", "grad_norm", ".2500", TUI_OF_NUMBERS, false, true},
        {"l2_norm/grad/fc.weight", "l2_norm/grad/fc.weight", ".2500", TUI_OF_NUMBERS,
         false, true},
        {"throughput/samples_per_sec", "samples/s", "0.25", TUI_OF_NUMBERS, true,
         false},
        {"throughput/tokens_per_sec", "tokens/s", "0.25", TUI_OF_NUMBERS, true, false},
        {"throughput/batches_per_sec", "batches/s", "0.25", TUI_OF_NUMBERS, true,
         false},
        {"throughput/device/mfu", "MFU", "0.25", TUI_OF_NUMBERS, true, false},
        {"memory/alloc_retries", "memory/alloc_retries", ".2500", TUI_OF_NUMBERS, true,
         false},
        {"memory/peak_allocated_mem", "peak allocated", "250 MB", TUI_OF_BYTES, true,
         false},
        {"memory/current_allocated_mem", "allocated", "250 MB", TUI_OF_BYTES, true,
         false},
        {"memory/peak_reserved_mem", "memory/peak_reserved_mem", "250 MB", TUI_OF_BYTES,
         true, false},
        {"own/number", "own/number", ".2500", TUI_OF_NUMBERS, false, false},
    };
    char label[ET_METRIC_NAME], text[TUI_NUMBER];
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++) {
        const char *name = metrics[i].name;
        const struct tui_metric_look look = tui_metric_look(name);
        is_str(tui_metric_label(name, label), metrics[i].label, "%s has its label",
               name);
        is_str(tui_metric_value(name, 0.25, text), metrics[i].text,
               "and its values their form");
        ok(look.of == metrics[i].of && look.from_zero == metrics[i].from_zero &&
               look.can_burst == metrics[i].can_burst && look.per > 0,
           "and its curve its scale");
    }
}

int
main(void)
{
    test_numbers();
    test_times();
    test_zeros();
    test_metrics();
    return done();
}
