#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Ranks that stand still, leave a collective out, hold the others back, or crash again and
# again: the right one is named, with what it did last (RELIABILITY.md R04, R13, R15).
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Processes;
use Test::More;

my $event = qr/^ +-\d+\.\d{6}  ba \d+  \w+$/m;
my $stack = qr/-- signal 06: ${stands}faults/;

write_recipe('r.yaml', <<'R');
eval_data: {name: synthetic_images, num_samples: 16, workers: 0}
eval_interval: 50ba
R

# A run of two ranks with a fault, which hangs; $who is to be named so. (With one save: a
# second would wait for it, and where the disk is slow for longer than the timeout.)
sub hangs {
    my ($run, $points, $who, $what) = @_;
    is finish(start_with($faults, $points, $run, '-n', 2, '--timeout', '5s', 'checkpoint.interval=100ba')), 5,
        "$what: hung, 5";
    like slurp("$run.err"), qr/^etude: error E6007: $who; dumps\/rank1\.txt has what it did last$/m, 'named so';
    is field($run, 'state'), 'hung', 'hung';
    my @dumps = map { slurp("$run/dumps/rank$_.txt") } 0, 1;
    is scalar(grep { /$event/ && /$stack/ } @dumps), 2, 'of all ranks dumps/ has what they did last, and where they stood';
    my @events = $dumps[0] =~ /$event/g;
    cmp_ok scalar(@events), '<=', 2000, 'the last 2,000 events';
}

SKIP: {
    skip 'built without Gloo', 27 unless $has_gloo;
    hangs('spins', 'rank1:before_forward=spin@120',
        qr/rank 1 did not arrive at all_reduce \d+ of \d+ f32 \[119\.\d+\], in which rank 0 has waited for \d+ s: it is after batch 119, in reading data/,
        'a rank in an endless loop');
    hangs('stands', 'rank1:before_backward=stop@70',
        qr/rank 1 did not arrive at all_reduce \d+ of \d+ f32 \[69\.\d+\], in which rank 0 has waited for \d+ s: it is after batch 69, in forward; its process is stopped/,
        'a rank that is stopped');
    hangs('skips', 'rank1:all_reduce=skip@2',
        qr/rank 1 did not arrive at all_reduce (\d+) of 1 u8, in which rank 0 has waited for \d+ s: it is after batch 50, in all_reduce \1 of 2 f64/,
        'a rank that leaves a collective out');
    like slurp('skips/dumps/rank0.txt'), qr/all_reduce \d+ of 1 u8 begins\n(?!.*all_reduce \d+ of 1 u8 ends$)/m,
        'the collective is the last thing that the other did';

    # Each start counts anew: the second has 50 batches to do, or 100 where the hang came
    # before the save at 100 was whole, and ends before its 120th. (That save waits for the
    # one before it, and the timeout leaves a slow disk the time.)
    is finish(start_with($faults, 'rank1:before_forward=spin@120', 'again', '-n', 2, '--timeout', '15s',
        '--autoresume', 'max_duration=150ba')), 0, 'with --autoresume the group is started again, and ends well';
    is field('again', 'incarnation'), 2, 'once';
    like slurp('again/logs/rank0.txt'), qr/rank 1 did not arrive .* it is started again in 1 s \(2 left\)/, 'and why is in its log';

    # ---- slow, and only flagged ----

    # Until it is told of: a machine with too much to do may hold the other rank back meanwhile.
    for my $slow (['rank1:after_dataloader', 1, 'its dataloader'], ['rank0:before_backward', 0, 'its computing']) {
        my ($point, $rank, $cause) = @$slow;
        my $run = "slow$rank";
        my $pid = start_with($faults, "$point=delay:60\@*", $run, '-n', 2);
        my $line = qr/rank $rank holds every step back by \d+\.\d ms \(\d+%\): $cause\. Its own part/;
        ok until_true(sub { slurp("$run/logs/rank0.txt") =~ $line }), "rank $rank is told of, for $cause";
        ok until_true(sub { slurp("$run/events.log") =~ $line }), 'in the log of the run';
        is +(command('stop', $run))[0], 0, 'the run goes on';
        is finish($pid), 75, 'until it is stopped';
    }
}

# ---- other ends (R04) ----

for my $end (
    ['overflow', qr/was ended by signal 11 \(Segmentation fault\)/, qr/-- signal 11: ${stands}faults/],
    ['abort', qr/was ended by signal 6 \(Aborted\)/, qr/-- signal 06: ${stands}faults/],
    ['exit', qr/ended by itself, with exit 0,/, qr/  before_forward$/m],
    ['kill', qr/was ended by signal 9 \(Killed\)/, qr/  before_forward$/m],
) {
    my ($action, $what, $dump) = @$end;
    # What a rank holds when something calls exit() is no leak.
    local $ENV{ASAN_OPTIONS} = "$ENV{ASAN_OPTIONS}:detect_leaks=0" if $action eq 'exit';
    is finish(start_with($faults, "before_backward=$action\@20", "by-$action")), 1, "a rank that ends by $action: exit 1";
    like slurp("by-$action.err"), qr/^etude: error E\d+: rank 0 $what.*after batch 19; dumps\/rank0/m, 'named so';
    ok slurp("by-$action/dumps/rank0.txt") =~ $dump, 'with what it did last';
}

# ---- the same crash at the same batch (R15) ----

# No checkpoint comes before it: each start begins where the first did.
is finish(start_with($faults, 'batch_end=crash@30', 'loop', '--autoresume')), 1, 'a crash at the same batch each time ends the run: 1';
is field('loop', 'incarnation'), 3, 'after three tries';
like slurp('loop.err'),
    qr/^etude: error E6\d+: rank 0 was ended by signal 11 \(Segmentation fault\) after batch 29; dumps\/rank0\.txt has what it did last: the third time at this batch$/m,
    'with rank, signal and batch';
my @stood = slurp('loop/dumps/rank0.txt') =~ /(-- signal 11: ${stands}faults)/g;
is scalar(@stood), 3, 'and dumps/ has where it stood each time';
is field('loop', 'state'), 'failed', 'failed';
done_testing();
