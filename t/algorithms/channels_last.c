/* SPDX-License-Identifier: Apache-2.0 */
/* ChannelsLast: spec/algorithms.md 2.4. */
#include "t/algorithms/golden.h"

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_module *m = golden_vision(cx);
    struct et_leaves l;
    int n, all;
    need(cx, et_apply_channels_last(cx, m, &n, &all));
    ok(n == 2 && all == 2, "both filters are channels-last");
    need(cx, et_module_leaves(cx, m, ET_PARAM, &l));
    struct et_desc *d = &l.v[0].param->desc;
    ok(d->stride[0] == 27 && d->stride[1] == 1 && d->stride[2] == 9 &&
           d->stride[3] == 3,
       "a filter [4,3,3,3] has the strides 27, 1, 9, 3");
    et_desc_init(d, ET_F32, ET_SHAPE(4, 3, 3, 3), ET_ROW_MAJOR);
    need(cx, et_apply_channels_last(cx, m, &n, &all));
    ok(n == 1 && all == 2, "one that is not is not counted");
    et_leaves_release(&l);
    et_module_free(&m);

    struct run_setup setup = {.n = 8, .model = "resnet8"};
    struct et_algorithm *a = algorithm(cx, "channels_last", OPTIONS());
    struct losses plain = train(cx, setup, NULL, 0), with = train(cx, setup, &a, 1);
    ok(difference(&plain, &with) == 0, "a run with it is the run without, bit for bit");
    et_algorithm_free(&a);
    check_told(cx, "channels_last", OPTIONS(), "resnet8",
               "channels_last changes nothing: 9 of 9 filters are channels-last");
    return finish(cx);
}
