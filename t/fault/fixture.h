/* fixture.h: what the tests of faults share: folders that come and go, a small run that
 * saves and loads, and what must never be left behind. */
#ifndef ETUDE_T_FAULT_FIXTURE_H
#define ETUDE_T_FAULT_FIXTURE_H

#include "core/base/seams.h"
#include "core/checkpoint/store.h"
#include "t/train/fixture.h"

/* Does the environment ask for the night's column of the fault matrix? */
bool is_long(void);

/* ---- folders ---- */

/* DIR/NAME, in one of a few buffers taken in turn. */
const char *path_to(const char *dir, const char *name);
/* Removes PATH and all in it, by the system's own calls. */
void remove_tree(const char *path);
void make_folder(const char *path);
/* The bytes of a file, for free(); bails out where there is none. */
void *read_whole(const char *path, size_t *n);
void write_whole(const char *path, const void *bytes, size_t n);
/* How many names in DIR begin with PREFIX; 0 where there is no DIR. */
int count_names(const char *dir, const char *prefix);
/* Descriptors that this process has open. */
int count_descriptors(void);
/* Replaces FROM, which must be there, by TO in DIR/STEP/MANIFEST, and its digest by the
 * right one. */
void reseal(const char *dir, int64_t step, const char *from, const char *to);

/* ---- a run ---- */

/* A trainer of mlp on counted images, 2 batches an epoch, with momentum; CHECKPOINT
 * and LOAD may be NULL. Either the run is open, or *STATUS says why not and all is
 * freed. */
struct saving_run {
    struct run r;
    struct et_ctx *cx;
};
bool saving_open(struct saving_run *s, struct et_ctx *cx,
                 const struct et_checkpoint_config *checkpoint,
                 const struct et_load_config *load, et_status *status);
void saving_close(struct saving_run *s);
/* Trains N batches more, or bails out. */
void saving_train(struct saving_run *s, int n);
/* All that a checkpoint holds of it in one number. */
uint64_t saving_digest(struct saving_run *s);

/* A configuration that saves into DIR only when asked to. */
struct et_checkpoint_config saves_to(const char *dir, int64_t keep);

#endif
