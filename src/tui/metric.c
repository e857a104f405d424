/* SPDX-License-Identifier: Apache-2.0 */
/* metric.c: see metric.h. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "dist/hub/step.h"
#include "tui/format.h"
#include "tui/metric.h"

/* The first row whose BEGIN and END a name begins and ends with. LABEL NULL: the name
 * is shown, without "metrics/". */
static const struct {
    const char *begin, *end, *label;
    struct tui_metric_look look;
} metrics[] = {
    {"loss/train/total", "", "loss/train", {.role = TUI_S1, .can_burst = true}},
    {"loss/", "", NULL, {.role = TUI_S1, .can_burst = true}},
    {"metrics/train/",
     "/Accuracy",
     "accuracy (train)",
     {TUI_S3, TUI_OF_PARTS, 0, 0, 0}},
    {"metrics/", "/Accuracy", "accuracy", {TUI_S3, TUI_OF_PARTS, 0, 0, 0}},
    {"metrics/train/",
     "/CrossEntropy",
     "ce (train)",
     {.role = TUI_S1, .can_burst = true}},
    {"metrics/", "/CrossEntropy", "ce", {.role = TUI_S1, .can_burst = true}},
    {"metrics/", "/LanguageCrossEntropy", "ce", {.role = TUI_S1, .can_burst = true}},
    {"metrics/", "/LanguagePerplexity", "ppl", {.role = TUI_S4, .can_burst = true}},
    {"metrics/", "", NULL, {.role = TUI_S3}},
    {"lr-", "", "lr", {.role = TUI_S2, .from_zero = true}},
    {"l2_norm/grad/global", "", "grad_norm", {.role = TUI_S4, .can_burst = true}},
    {"l2_norm/", "", NULL, {.role = TUI_S4, .can_burst = true}},
    {"throughput/samples_per_sec",
     "",
     "samples/s",
     {.role = TUI_S6, .from_zero = true}},
    {"throughput/tokens_per_sec", "", "tokens/s", {.role = TUI_S6, .from_zero = true}},
    {"throughput/batches_per_sec",
     "",
     "batches/s",
     {.role = TUI_S6, .from_zero = true}},
    {"throughput/flops_per_sec", "", "FLOP/s", {.role = TUI_S6, .from_zero = true}},
    {"throughput/device/samples_per_sec",
     "",
     "samples/s a device",
     {.role = TUI_S6, .from_zero = true}},
    {"throughput/device/tokens_per_sec",
     "",
     "tokens/s a device",
     {.role = TUI_S6, .from_zero = true}},
    {"throughput/device/batches_per_sec",
     "",
     "batches/s a device",
     {.role = TUI_S6, .from_zero = true}},
    {"throughput/device/flops_per_sec",
     "",
     "FLOP/s a device",
     {.role = TUI_S6, .from_zero = true}},
    {"throughput/device/mfu", "", "MFU", {.role = TUI_S6, .from_zero = true}},
    {"throughput/", "", NULL, {.role = TUI_S6, .from_zero = true}},
    {"step/step_ms", "", NULL, {TUI_S1, TUI_OF_NUMBERS, 1, true, true}},
    {"step/forward_ms", "", NULL, {TUI_S3, TUI_OF_NUMBERS, 1, true, true}},
    {"step/compute_ms", "", NULL, {TUI_S3, TUI_OF_NUMBERS, 1, true, true}},
    {"step/backward_ms", "", NULL, {TUI_S4, TUI_OF_NUMBERS, 1, true, true}},
    {"step/optimizer_ms", "", NULL, {TUI_S2, TUI_OF_NUMBERS, 1, true, true}},
    {"step/data_ms", "", NULL, {TUI_S6, TUI_OF_NUMBERS, 1, true, true}},
    {"step/wait_ms", "", NULL, {TUI_S5, TUI_OF_NUMBERS, 1, true, true}},
    {"step/hooks_ms", "", NULL, {TUI_S8, TUI_OF_NUMBERS, 1, true, true}},
    {"step/", "", NULL, {TUI_S7, TUI_OF_NUMBERS, 1, true, true}},
    {"memory/alloc_retries", "", NULL, {.role = TUI_S8, .from_zero = true}},
    {"memory/peak_allocated_mem",
     "",
     "peak allocated",
     {TUI_S8, TUI_OF_BYTES, 1e9, true, false}},
    {"memory/current_allocated_mem",
     "",
     "allocated",
     {TUI_S8, TUI_OF_BYTES, 1e9, true, false}},
    {"memory/", "", NULL, {TUI_S8, TUI_OF_BYTES, 1e9, true, false}},
};

static int
find(const char *name)
{
    const int n = sizeof metrics / sizeof *metrics;
    const size_t length = strlen(name);
    for (int i = 0; i < n; i++) {
        const size_t end = strlen(metrics[i].end);
        if (strncmp(name, metrics[i].begin, strlen(metrics[i].begin)) == 0 &&
            length >= end && strcmp(name + length - end, metrics[i].end) == 0)
            return i;
    }
    return -1;
}

struct tui_metric_look
tui_metric_look(const char *name)
{
    const int i = find(name);
    struct tui_metric_look look = {.role = TUI_S7};
    if (i >= 0)
        look = metrics[i].look;
    if (!(look.per > 0))
        look.per = 1;
    return look;
}

const char *
tui_metric_value(const char *name, double v, char *buf)
{
    const struct tui_metric_look look = tui_metric_look(name);
    if (look.of == TUI_OF_BYTES)
        return tui_bytes(v * look.per, buf);
    if (etd_step_name(name))
        return tui_ms(v, buf);
    return strncmp(name, "throughput/", 11) == 0 ? tui_rate(v, buf) : tui_value(v, buf);
}

const char *
tui_metric_label(const char *name, char buf[ET_METRIC_NAME])
{
    const int i = find(name);
    const char *part = etd_step_name(name);
    const bool is_metric = strncmp(name, "metrics/", 8) == 0;
    const char *set = name + (is_metric ? 8 : 0);
    /* The evaluator is named unless it is "eval". */
    const int n = (int)strcspn(set, "/");
    if (part)
        snprintf(buf, ET_METRIC_NAME, "%s", part);
    else if (i >= 0 && metrics[i].label && is_metric && strncmp(set, "eval/", 5) != 0 &&
             !strchr(metrics[i].label, '('))
        snprintf(buf, ET_METRIC_NAME, "%s (%.*s)", metrics[i].label, n, set);
    else
        snprintf(buf, ET_METRIC_NAME, "%s",
                 i >= 0 && metrics[i].label ? metrics[i].label : set);
    return buf;
}
