/* SPDX-License-Identifier: Apache-2.0 */
/* layers.h: a network that a recipe spells out, as lines that a person can change. */
#ifndef ETI_COMPOSE_LAYERS_H
#define ETI_COMPOSE_LAYERS_H

#include "core/compose/sketch.h"

enum { ETI_LAYER_LINES = 256 };

/* An item of a list of layers; or, with an empty path, the name of a block, whose items
 * follow. */
struct eti_layer_line {
    char path[ETI_PATH_BYTES]; /* "model.layers.2.residual.0" */
    char list[ETI_PATH_BYTES]; /* "model.layers.2.residual" */
    int at, n;                 /* which of that list's items */
    int depth;
    char name[64];     /* "conv2d", "residual"; of a block its name */
    char options[160]; /* as they are written, without braces; "": none, or layers */
    char as[40];       /* the name of what it gives; "" */
    char module[128];  /* its path in the model; "": it is in a block */
    bool is_text;      /* it is written as a name alone */
    bool has_layers;   /* they follow, one deeper */
};

/* The lines of D's recipe: at most N into OUT. Returns how many; 0 where its model is
 * not spelled out. */
int eti_layer_lines(const struct eti_sketch *d, struct eti_layer_line *out, int n);

/* Each is one step of undo, as those of sketch.h. */

/* A new item NAME in the list at LIST, place AT; OPTIONS, a YAML value, are behind it
 * ("": none). */
ET_NODISCARD et_status eti_sketch_insert_layer(struct eti_sketch *d, const char *list,
                                               int at, const char *name,
                                               const char *options);
/* OPTIONS, a YAML value, instead of what is behind LINE's name. */
ET_NODISCARD et_status eti_sketch_set_layer(struct eti_sketch *d,
                                            const struct eti_layer_line *line,
                                            const char *options);
/* ENOENT: there is no such place. */
ET_NODISCARD et_status eti_sketch_move_layer(struct eti_sketch *d,
                                             const struct eti_layer_line *line, int by);
/* EINVAL: a list has one layer at least. */
ET_NODISCARD et_status eti_sketch_remove_layer(struct eti_sketch *d,
                                               const struct eti_layer_line *line);

/* May OPTIONS, a mapping, stand behind the layer C? EINVAL with the sentence. */
ET_NODISCARD et_status eti_layer_try(struct et_ctx *cx, const struct et_component *c,
                                     const char *options);

#endif
