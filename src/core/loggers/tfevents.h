/* SPDX-License-Identifier: Apache-2.0 */
/* tfevents.h: writing the files that TensorBoard reads. Format: tfevents.c. */
#ifndef ETI_TFEVENTS_H
#define ETI_TFEVENTS_H

#include "core/loggers/loggers.h"
#include "core/loggers/protobuf.h"

/* A file of events, and the summary that is being filled. */
struct eti_tfevents {
    struct eti_output file;
    unsigned char *summary; /* ETI_OUTPUT_BUFFER bytes, USED of them filled */
    size_t used;
    double t; /* of the summary: seconds since 1970 */
    int64_t step;
};

/* Begins events.out.tfevents.* in DIRECTORY, which is made if it is not there, under a
 * name that comes after those of all others in it: T in seconds since 1970, or as much
 * later as is needed. *RESUMED: there were others. EINVAL, EIO. */
ET_NODISCARD et_status eti_tfevents_open(struct et_ctx *cx, const char *directory,
                                         double t, struct eti_tfevents *out,
                                         bool *resumed);
/* A session starts at STEP. Readers drop what earlier files say of that step and later
 * ones, if those began with a session too: the first of all is not taken for a
 * restart. */
void eti_tfevents_start(struct eti_tfevents *w, double t, int64_t step);
/* The event that the values which follow belong to; it is written when the next begins,
 * or at a flush. */
void eti_tfevents_at(struct eti_tfevents *w, double t, int64_t step);
/* A number under TAG, kept as f32. */
void eti_tfevents_scalar(struct eti_tfevents *w, const char *tag, double value);
/* Markdown under TAG; cut off where it does not fit a buffer. */
void eti_tfevents_text(struct eti_tfevents *w, const char *tag, const char *text);
/* A picture, N bytes of PNG, under TAG. */
void eti_tfevents_image(struct eti_tfevents *w, const char *tag, int64_t width,
                        int64_t height, const void *png, size_t n);
/* Adds a hyperparameter to SESSION: TEXT, or where that is NULL the NUMBER. */
void eti_tfevents_given(struct eti_message *session, const char *name, double number,
                        const char *text);
/* The run of GROUP that was given SESSION begins; it has come to its end. */
void eti_tfevents_begin_session(struct eti_tfevents *w, struct eti_message *session,
                                const char *group);
void eti_tfevents_end_session(struct eti_tfevents *w);
void eti_tfevents_flush(struct eti_tfevents *w);
/* Also where opening has failed. */
void eti_tfevents_close(struct eti_tfevents *w);

#endif
