/* SPDX-License-Identifier: Apache-2.0 */
/* What programs and plugins read of the state and set in it. */
#include <string.h>

#include "core/trainer/state.h"
#include "etude/algorithm.h"
#include "etude/callback.h"
#include "t/tap.h"

/* Every byte of it differs from its neighbours', as no two fields have the same. */
static struct et_state
state(void)
{
    static struct et_state s;
    unsigned char *bytes = (unsigned char *)&s;
    for (size_t i = 0; i < sizeof s; i++)
        bytes[i] = (unsigned char)(i / 8 * 7 + i % 8);
    s.target_reached = true;
    s.interrupted = s.checkpoint_due = s.keep_local = false;
    return s;
}

static void
check_values(void)
{
    struct et_state s = state();
#define HAS(name, field)                                                               \
    do {                                                                               \
        __typeof__(s.field) want = s.field;                                            \
        __typeof__(s.field) got = (__typeof__(s.field))et_state_get_##name(&s);        \
        ok(memcmp(&got, &want, sizeof got) == 0, "et_state_get_" #name);               \
    } while (0)
    HAS(ctx, cx);
    HAS(device, dev);
    HAS(graph, graph);
    HAS(log, log);
    HAS(run_name, run_name);
    HAS(seed, seed);
    HAS(rank, rank);
    HAS(world, world);
    HAS(precision, precision);
    HAS(model, model);
    HAS(params, params);
    HAS(optimizer, optimizer);
    HAS(loading, loading);
    HAS(surgeries, surgeries);
    HAS(lr_factor, lr_factor);
    HAS(stop_reason, stop_reason);
    HAS(dataloader_label, dataloader_label);
    HAS(dataloader_len, dataloader_len);
    HAS(train_len, train_len);
    HAS(train_samples, train_samples);
    HAS(max_seq_len, max_seq_len);
    HAS(grad_accum, grad_accum);
    HAS(batch_size, batch_size);
    HAS(first_sample, first_sample);
    HAS(pass, pass);
    HAS(outputs, outputs);
    HAS(loss, loss);
    HAS(grad, grad);
    HAS(loss_scale, loss_scale);
    HAS(loss_value, loss_value);
    HAS(batch_flops, batch_flops);
    ok(et_state_get_max_duration(&s).value == s.max_duration.value,
       "et_state_get_max_duration");
    ok(et_state_get_timestamp(&s) == &s.timestamp &&
           et_state_get_eval_timestamp(&s) == &s.eval_timestamp &&
           et_state_get_predict_timestamp(&s) == &s.predict_timestamp,
       "each timestamp is its own");
    ok(et_state_get_full(&s) == &s.full && et_state_get_batch(&s) == &s.batch,
       "the rank's batch and the microbatch are their own");
    ok(et_state_get_target_reached(&s) && !et_state_get_interrupted(&s) &&
           !et_state_get_checkpoint_due(&s),
       "target_reached is none of the other two");
    s.target_reached = false;
    s.interrupted = true;
    ok(!et_state_get_target_reached(&s) && et_state_get_interrupted(&s) &&
           !et_state_get_checkpoint_due(&s),
       "nor is interrupted");
    ok(et_state_edit_model(&s) == s.model && et_state_edit_params(&s) == s.params &&
           et_state_edit_optimizer(&s) == s.optimizer,
       "what may be changed is what is read");
}

static void
check_lists(void)
{
    struct et_algorithm a[2], *algorithms[] = {&a[0], &a[1]};
    struct et_callback c, *callbacks[] = {&c};
    struct et_metric_value train[1], eval[2];
    struct et_state s = {
        .algorithms = algorithms,
        .n_algorithms = 2,
        .callbacks = callbacks,
        .n_callbacks = 1,
        .train_metrics = train,
        .n_train_metrics = 1,
        .eval_metrics = eval,
        .n_eval_metrics = 2,
    };
    int n = 0;
    ok(et_state_get_algorithm(&s, 1) == &a[1] && !et_state_get_algorithm(&s, 2) &&
           !et_state_get_algorithm(&s, -1),
       "algorithms are asked for by number, and past the end there is none");
    ok(et_state_get_callback(&s, 0) == &c && !et_state_get_callback(&s, 1) &&
           !et_state_get_callback(&s, -1),
       "callbacks likewise");
    ok(et_state_get_train_metrics(&s, &n) == train && n == 1, "metrics of training");
    ok(et_state_get_eval_metrics(&s, &n) == eval && n == 2, "and of evaluations");
}

static et_status
own_step(struct et_state *s, void *data, et_closure_fn *closure)
{
    (void)data;
    return closure(s, 0);
}

static void
check_setting(void)
{
    struct et_state s = {.keep_local = false};
    struct et_tensor t[4];
    struct et_samples full = {.n = 8}, batch = {.n = 2, .first_row = 4};
    int data;
    et_state_set_full(&s, &full);
    et_state_set_batch(&s, &batch);
    ok(s.full.n == 8 && s.batch.n == 2 && s.batch.first_row == 4, "batches are set");
    et_state_set_outputs(&s, &t[0]);
    et_state_set_loss(&s, &t[1]);
    et_state_set_grad(&s, &t[2]);
    ok(s.outputs == &t[0] && s.loss == &t[1] && s.grad == &t[2],
       "outputs, loss and gradient are set");
    et_state_set_step(&s, own_step, &data);
    ok(s.step == own_step && s.step_data == &data, "so is a step with its data");
    et_state_set_keep_local(&s, true);
    ok(s.keep_local, "and that the gradient stays the rank's own");
}

int
main(void)
{
    check_values();
    check_lists();
    check_setting();
    return done();
}
