/* SPDX-License-Identifier: Apache-2.0 */
/* fields.h: the fields of data sets, checked, and raw samples on their way in. */
#ifndef ETI_DATA_FIELDS_H
#define ETI_DATA_FIELDS_H

#include "core/image/decode.h"
#include "etude/data.h"

/* Memory for what a data set reads, field by field. */
struct eti_room {
    void *block[ET_MAX_FIELDS];
    size_t bytes[ET_MAX_FIELDS];
};
void eti_room_free(struct eti_room *room);

/* Are the facts of DATA, open by now, ones that batches can be made of? EINVAL: what of
 * its class is wrong. */
ET_NODISCARD et_status eti_facts_check(struct et_ctx *cx,
                                       const struct et_dataset *data);
/* The place of the image among F's fields; -1: there is none. */
int eti_facts_image(const struct et_data_facts *f);
/* The type of a field's numbers in a batch. */
enum et_dtype eti_field_dtype(const struct et_field *field);
/* Numbers of one sample of FIELD; -1 where that differs by sample. */
int64_t eti_field_count(const struct et_field *field);

/* The draws of a sample, by its place or its number. */
struct et_rng eti_sample_draws(uint32_t seed, int64_t index);

/* Sample AT of DATA into S, with ROOM to read into, and what it has is checked: sizes,
 * and integers against their bounds. DRAWS: the sample's; NULL: those of its number.
 * EFORMAT: it cannot be read, or (*BROKEN) it is not as the facts have it, which ends a
 * run. */
ET_NODISCARD et_status eti_sample_read(const struct et_dataset *data, int64_t at,
                                       const struct et_rng *draws,
                                       struct eti_room *room, struct et_sample *s,
                                       struct et_error *why, bool *broken);
/* Is V, of FIELD, the bytes of a picture's file, and not its pixels? */
bool eti_value_is_file(const struct et_field *field, const struct et_sample_value *v);
/* Makes field I of S, a whole picture or mask that came as a file, pixels that lie in
 * D, and checks them as eti_sample_read does. EFORMAT names the file. */
ET_NODISCARD et_status eti_sample_decode(const struct et_dataset *data, int64_t at,
                                         int i, struct eti_decoder *d,
                                         struct et_sample *s, struct et_error *why,
                                         bool *broken);
/* Puts the file of V, where it has a name, before the sentence of WHY. Returns WHY's
 * status. */
ET_NODISCARD et_status eti_name_file(const struct et_sample_value *v,
                                     struct et_error *why);
/* Is field I of S in ROOM, and so not in the data set's own memory? */
bool eti_sample_is_read(const struct et_sample *s, int i);

/* Makes field I of S zeros: where nobody looks at them. ENOMEM. */
ET_NODISCARD et_status eti_sample_zero(struct et_sample *s, int i);

/* N numbers of TYPE as those of a batch, I32 or f32. False: an integer is too large. */
bool eti_convert(const void *from, enum et_dtype type, int64_t n, enum et_dtype to,
                 void *out);

#endif
