/* etude.h: everything, in the order to read it.
 *
 *  1. status.h ctx.h types.h   how things fail, where memory comes from, what arrays are
 *  2. tensor.h graph.h op.h    a leaf with storage or a node; expressions; the operations
 *  3. device.h attr.h          what a device module gives: kernels for those operations
 *  4. option.h time.h rng.h    option tables, training time, counter-based randomness
 *
 * Then module.h and model.h (formulas on a graph), optim.h and sched.h, data.h,
 * event.h, state.h, algorithm.h, callback.h and trainer.h (the loop); recipe.h reads all
 * of it from one file, diagnostic.h says what is wrong there. HACKING holds the tour with
 * the files behind each step. */
#ifndef ETUDE_ETUDE_H
#define ETUDE_ETUDE_H

#include "etude/status.h"
#include "etude/ctx.h"
#include "etude/types.h"
#include "etude/tensor.h"
#include "etude/op.h"
#include "etude/graph.h"
#include "etude/rng.h"
#include "etude/time.h"
#include "etude/option.h"
#include "etude/module.h"
#include "etude/nn.h"
#include "etude/model.h"
#include "etude/sched.h"
#include "etude/optim.h"
#include "etude/data.h"
#include "etude/metric.h"
#include "etude/diagnostic.h"
#include "etude/recipe.h"

#endif
