/* SPDX-License-Identifier: Apache-2.0 */
/* picture_labels.h: what samples of pictures are to become, as texts that a file has:
 * names of classes, their numbers, or numbers to learn. */
#ifndef ETI_DATA_PICTURE_LABELS_H
#define ETI_DATA_PICTURE_LABELS_H

#include "core/data/picture_list.h"

enum eti_label_task {
    ETI_LABELS_AUTO, /* as the texts are */
    ETI_LABELS_CLASSIFICATION,
    ETI_LABELS_REGRESSION,
};
extern const char *const eti_label_task_names[];
extern const char *const eti_label_classes_names[]; /* "auto", NULL */

struct eti_label_options {
    int task;                /* enum eti_label_task */
    struct et_texts classes; /* names in their order; none: those that there are */
    int64_t num_classes;     /* of numbered ones; ET_INT_UNSET: the largest + 1 */
};
/* Rows of a struct with a member `labels` of it. */
#define ETI_LABEL_OPTIONS(S)                                                           \
    {                                                                                  \
        .name = "task",                                                                \
        .type = ET_OPT_ENUM,                                                           \
        .offset = offsetof(S, labels.task),                                            \
        .def = "auto",                                                                 \
        .choices = eti_label_task_names,                                               \
        .help = "what labels are; auto: classes by name or whole number, or numbers",  \
    },                                                                                 \
        {                                                                              \
            .name = "classes",                                                         \
            .type = ET_OPT_TEXTS,                                                      \
            .offset = offsetof(S, labels.classes),                                     \
            .def = "[]",                                                               \
            .help = "names of the classes, in order; empty: those that the data have", \
        },                                                                             \
    {                                                                                  \
        .name = "num_classes", .type = ET_OPT_INT,                                     \
        .offset = offsetof(S, labels.num_classes), .def = "auto",                      \
        .choices = eti_label_classes_names, .min = 1, .max = 1 << 24,                  \
        .help = "numbers of classes and masks are below it; auto: as the data have",   \
    }

/* Sets label or values of L from TEXT [l->n, K], of which none is left. Behind these
 * are the labels of the other split, if there is one in the same files: they count, or
 * each split would number its own classes. Names are numbered in the order of their
 * bytes unless the user has one. EFORMAT with *AT >= 0:
 * which of TEXT is no label, and WHY says why. Other failures, and EFORMAT with -1,
 * set the error of CX. */
ET_NODISCARD et_status eti_labels_end(struct et_ctx *cx, struct eti_picture_list *l,
                                      const struct eti_strings *text, int64_t k,
                                      const struct eti_label_options *o, int64_t *at,
                                      struct et_error *why);

#endif
