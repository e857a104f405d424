/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.h: saving a run and going on from what was saved (archive.c, save.c,
 * load.c). */
#ifndef ETI_TRAINER_CHECKPOINT_H
#define ETI_TRAINER_CHECKPOINT_H

#include "etude/archive.h"
#include "etude/trainer.h"

#include "core/checkpoint/manifest.h"

/* The last time that the run went back to a checkpoint. */
struct eti_rollback {
    int64_t at;       /* batches that were finished then */
    int64_t lost;     /* of them, those that it went back by */
    int64_t in_a_row; /* how often, each before it had made up for what was lost */
};

/* Whose data the words describe, as they were before algorithms changed them (a resumed
 * run compares them then); NULL: they have not been described. */
struct eti_described_data {
    const struct et_loader *of;
    char text[ETI_DATA_TEXT];
};

/* archive.c: model, optimizer and algorithms: what training has made, without time and
 * place. */
ET_NODISCARD et_status eti_archive_learned(struct et_trainer *t, struct et_archive *a);

/* save.c. After eti_load; nothing is saved without a config. */
ET_NODISCARD et_status eti_saver_begin(struct et_trainer *t);
/* Checkpoints name A from here on, if any are saved. */
ET_NODISCARD et_status eti_saver_joined(struct et_trainer *t,
                                        const struct et_algorithm *a);
/* And no more, if they did. */
void eti_saver_left(struct et_trainer *t, const struct et_algorithm *a);
/* Checkpoints say from here on what has been switched, if any are saved. One is saved
 * with this batch where the run may have to go back. */
ET_NODISCARD et_status eti_saver_switched(struct et_trainer *t);
/* Waits for the save under way, and says what became of it; false: nothing is saved. */
bool eti_settle_save(struct et_trainer *t);
/* After the last step: waits for the thread; the outcome says if that was in vain. */
void eti_finish_saving(struct et_trainer *t);
/* The run ends with the error that stands, between two steps: saves what there is. */
void eti_rescue(struct et_trainer *t);
/* After any other failure: waits until what is being written is written. */
void eti_keep_saved(struct et_trainer *t);

/* load.c: takes over what config.load says: between BEFORE_LOAD and AFTER_LOAD. */
ET_NODISCARD et_status eti_load(struct et_trainer *t);
/* Parameters, optimizer and algorithms as the newest checkpoint has them; data and
 * clock go on. False, with WHY, where that cannot be. */
bool eti_roll_back(struct et_trainer *t, char *why, size_t size);

#endif
