/* SPDX-License-Identifier: Apache-2.0 */
/* metric.h: what a metric is called on screens, and how its curve looks. */
#ifndef TUI_METRIC_H
#define TUI_METRIC_H

#include "etude/logger.h"
#include "tui/theme.h"
#include "tui/ticks.h"

struct tui_metric_look {
    enum tui_role role;   /* of its curve where it is alone in a chart */
    enum tui_quantity of; /* what its values are, each */
    double per;           /* this many of them: GB are TUI_OF_BYTES, 1e9 each */
    bool from_zero;       /* its scale begins at 0 */
    bool can_burst; /* where training breaks down it grows without end, and so would its
                       scale */
};
/* The name alone decides it, so a screen looks the same whenever it is opened. */
struct tui_metric_look tui_metric_look(const char *name);
/* V of it as text, with the same digits wherever it stands. Returns BUF of
 * TUI_NUMBER. */
const char *tui_metric_value(const char *name, double v, char *buf);
/* "loss/train", "accuracy", "grad_norm": GLOSSARY.md. Returns BUF of ET_METRIC_NAME. */
const char *tui_metric_label(const char *name, char buf[ET_METRIC_NAME]);

#endif
