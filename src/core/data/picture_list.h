/* SPDX-License-Identifier: Apache-2.0 */
/* picture_list.h: data sets whose samples are files of pictures: which files, of which
 * class, or with which mask. */
#ifndef ETI_DATA_PICTURE_LIST_H
#define ETI_DATA_PICTURE_LIST_H

#include "etude/data.h"

/* Names, or paths, in one block of text. Zero it to begin. */
struct eti_strings {
    char *text; /* each ended by 0; owned */
    int64_t text_n, text_room;
    int64_t *at; /* [n]: where each begins; owned */
    int64_t n, room;
};
ET_NODISCARD et_status eti_strings_add(struct et_ctx *cx, struct eti_strings *names,
                                       const char *name);
const char *eti_string(const struct eti_strings *names, int64_t i);
/* By their bytes. */
void eti_strings_sort(struct eti_strings *names);
/* Of sorted names, the place of NAME; -1: it is not one of them. */
int64_t eti_strings_find(const struct eti_strings *names, const char *name);
void eti_strings_free(struct et_ctx *cx, struct eti_strings *names);
/* The names in the folder PATH that do not begin with a point, sorted. ENOENT, EIO: the
 * folder. */
ET_NODISCARD et_status eti_strings_of_folder(struct et_ctx *cx, const char *path,
                                             struct eti_strings *out);
/* The lines of a text file, without blanks around them; empty ones, and those that
 * begin with '#', are left out. */
ET_NODISCARD et_status eti_strings_of_lines(struct et_ctx *cx, const char *path,
                                            struct eti_strings *out);
bool eti_is_folder(struct et_ctx *cx, const char *path);

/* The private state of such a data set. */
struct eti_picture_list {
    struct eti_strings files;
    struct eti_strings masks; /* [files.n], or none */
    int32_t *label;           /* [files.n], where there are no masks; owned */
    int64_t label_room;
    struct eti_strings classes;
    const char **class_names; /* [classes.n]; owned */
    uint8_t map[256];         /* of masks: what their bytes become */
};
ET_NODISCARD et_status eti_picture_list_add(struct et_ctx *cx,
                                            struct eti_picture_list *l,
                                            const char *path, int32_t label);
/* Sets SELF's facts: pictures of C channels with a class each, when all are added.
 * EFORMAT: there are none. */
ET_NODISCARD et_status eti_picture_list_end(struct et_ctx *cx, struct et_dataset *self,
                                            int C);
/* Does file NAME belong to SPLIT, where FRACTION of all is to test? By a hash of the
 * name, so that more files change nothing for those that were there. */
bool eti_is_of_split(const char *name, double fraction, int split);

/* The hooks. A picture comes as the bytes of its file. */
ET_NODISCARD et_status eti_picture_list_sample(const struct et_dataset *self,
                                               int64_t at, struct et_sample *out,
                                               struct et_error *why);
void eti_picture_list_close(struct et_dataset *self);

extern const char *const eti_channel_names[]; /* "grey", "rgb", NULL */
/* Rows that these data sets share, of a struct with such members. */
#define ETI_CHANNELS_OPTION(S)                                                         \
    {                                                                                  \
        .name = "color", .type = ET_OPT_ENUM, .offset = offsetof(S, color),            \
        .def = "rgb", .choices = eti_channel_names,                                    \
        .help = "what pictures become: three channels, or one",                        \
    }
#define ETI_TEST_FRACTION_OPTION(S)                                                    \
    {                                                                                  \
        .name = "test_fraction", .type = ET_OPT_FLOAT,                                 \
        .offset = offsetof(S, test_fraction), .def = "0", .max = 1,                    \
        .help = "of the files, chosen by a hash of their names, that are to test",     \
    }

#endif
