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

/* Where a picture or a mask lies. */
struct eti_picture_at {
    int64_t offset;
    int32_t file;  /* place in the list of files; -1: no file */
    int32_t bytes; /* -1: the whole file is the picture */
};

/* The private state of such a data set. What a sample is to become is its label, its
 * values, or its mask. */
struct eti_picture_list {
    struct eti_strings files; /* pictures and masks, or shards that they lie in */
    struct eti_strings names; /* [n], for messages: of pictures in shards; or none */
    struct eti_picture_at *picture, *mask; /* [n]; mask NULL: there are none; owned */
    int64_t n, room, mask_room;
    int32_t *label; /* [n], or NULL; owned */
    int64_t label_room;
    float *values; /* [n, n_values], or NULL; owned */
    int64_t n_values;
    struct eti_strings classes;
    const char **class_names;        /* [classes.n]; owned */
    int64_t n_classes;               /* where they have no names */
    uint8_t map[256];                /* of masks: what their bytes become */
    struct eti_picture_cache *cache; /* picture_cache.h; NULL: none */
};
/* Adds a picture that is a file, of class LABEL. */
ET_NODISCARD et_status eti_picture_list_add(struct et_ctx *cx,
                                            struct eti_picture_list *l,
                                            const char *path, int32_t label);
/* Adds a picture, and its mask where that has a file. */
ET_NODISCARD et_status eti_picture_list_add_at(struct et_ctx *cx,
                                               struct eti_picture_list *l,
                                               const struct eti_picture_at *picture,
                                               const struct eti_picture_at *mask);
/* Sets SELF's facts: pictures of C channels with what the list has for each, when all
 * are added. Masks have NUM_CLASSES. CACHE: what the user wants of one, or NULL.
 * EFORMAT: there are no pictures. */
struct eti_cache_options {
    char *folder; /* NULL: no cache; the first, for stand_in.c */
    int64_t size;
    bool only_told; /* not in the table: one that is not there is told of, not made */
};
ET_NODISCARD et_status eti_picture_list_end(struct et_ctx *cx, struct et_dataset *self,
                                            int C, int64_t num_classes,
                                            const struct eti_cache_options *cache);
/* Does file NAME belong to SPLIT, where FRACTION of all is to test? By a hash of the
 * name, so that more files change nothing for those that were there. */
bool eti_is_of_split(const char *name, double fraction, int split);

/* The label or the values of sample AT, where there are no masks. */
void eti_picture_list_target(const struct eti_picture_list *l, int64_t at,
                             struct et_sample *out);
/* Sample AT as its files have it, past any cache. */
ET_NODISCARD et_status eti_picture_list_read(const struct et_dataset *self, int64_t at,
                                             struct et_sample *out,
                                             struct et_error *why);
/* The hooks. A picture comes as the bytes of its file, or from the cache. */
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
#define ETI_CACHE_OPTIONS(S)                                                           \
    {                                                                                  \
        .name = "cache",                                                               \
        .type = ET_OPT_PATH,                                                           \
        .offset = offsetof(S, cache.folder),                                           \
        .flags = ET_OPT_OPTIONAL,                                                      \
        .help =                                                                        \
            "folder to keep decoded and resized pictures in; unset: none are kept",    \
    },                                                                                 \
    {                                                                                  \
        .name = "cache_size", .type = ET_OPT_INT, .offset = offsetof(S, cache.size),   \
        .def = "256", .min = 1, .max = 4096, .unit = "pixels",                         \
        .help = "short side of kept pictures, at most; masks follow",                  \
    }

#endif
