/* SPDX-License-Identifier: Apache-2.0 */
/* etude.h: everything, in the order to read it.
 *
 *  1. version.h                which Etude this is
 *     status.h ctx.h types.h   how things fail; a thread's context; shapes and dtypes
 *     span.h                   what takes time, for a profile
 *  2. tensor.h graph.h op.h    arrays in a device's memory; formulas of them, which are
 *                              computed when asked for; the operations
 *     custom.h                 operations of your own: examples/custom_op.c
 *  3. device.h attr.h          for who writes a device: kernels for those operations
 *     comm.h                   what the processes of a run do together
 *     dist.h                   a program as one of them: examples/dist.c
 *  4. option.h time.h rng.h    option tables, training time, counter-based randomness
 *
 *  5. field.h                  samples: named tensors
 *     module.h nn.h            networks: parameters, and formulas on a graph
 *  6. optim.h model.h          update rules; a network with a task and a loss
 *     transform.h              pictures on their way into a batch
 *     data.h sched.h metric.h  what else a loop is made of: examples/own_loop.c
 *     tokenizer.h              text to tokens and back
 *  7. event.h archive.h state.h algorithm.h callback.h logger.h checkpoint.h control.h
 *     recipe.h diagnostic.h    a run from one file, and what is wrong there
 *     trainer.h                the loop, and who is called in it:
 *                              examples/custom_algorithm.c, distillation.c
 *     functional.h             algorithms as functions
 *  8. run.h                    what a run leaves behind
 *     predict.h                its model, for new samples
 *     session.h                what the program does with a recipe, in a program
 *  9. plugin.h                 components in a library of their own
 *     abi.h                    who was compiled with other headers than these
 *
 * doc/engine and doc/trainer hold the tour, with the files behind each step; they and
 * the examples are installed in share/doc/etude. */
#ifndef ETUDE_ETUDE_H
#define ETUDE_ETUDE_H

#include "etude/version.h"
#include "etude/status.h"
#include "etude/ctx.h"
#include "etude/types.h"
#include "etude/span.h"
#include "etude/tensor.h"
#include "etude/graph.h"
#include "etude/op.h"
#include "etude/custom.h"
#include "etude/comm.h"
#include "etude/dist.h"
#include "etude/option.h"
#include "etude/time.h"
#include "etude/rng.h"
#include "etude/field.h"
#include "etude/module.h"
#include "etude/nn.h"
#include "etude/optim.h"
#include "etude/model.h"
#include "etude/transform.h"
#include "etude/data.h"
#include "etude/sched.h"
#include "etude/metric.h"
#include "etude/tokenizer.h"
#include "etude/event.h"
#include "etude/archive.h"
#include "etude/state.h"
#include "etude/algorithm.h"
#include "etude/callback.h"
#include "etude/logger.h"
#include "etude/checkpoint.h"
#include "etude/control.h"
#include "etude/recipe.h"
#include "etude/diagnostic.h"
#include "etude/trainer.h"
#include "etude/functional.h"
#include "etude/run.h"
#include "etude/predict.h"
#include "etude/session.h"
#include "etude/plugin.h"
#include "etude/abi.h"

#endif
