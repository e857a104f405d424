/* checkpoint.h: what the trainer's files about checkpoints share. */
#ifndef ETI_TRAINER_CHECKPOINT_H
#define ETI_TRAINER_CHECKPOINT_H

#include "core/checkpoint/writer.h"
#include "core/trainer/trainer_impl.h"

/* archive.c: every value that later steps depend on, to save or to load. */
ET_NODISCARD et_status eti_archive_trainer(struct et_trainer *t, struct et_archive *a);
/* The model's parameters and buffers alone. */
ET_NODISCARD et_status eti_archive_model(struct et_trainer *t, struct et_archive *a);
/* Model, optimizer and algorithms: what training has made, without time and place. */
ET_NODISCARD et_status eti_archive_learned(struct et_trainer *t, struct et_archive *a);
/* "60000 samples in batches of 128, ...": what the train data must be again. */
ET_NODISCARD et_status eti_describe_data(struct et_trainer *t, char *buf, size_t size);

#endif
