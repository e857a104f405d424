#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Four times as many busy processes as processors: no rank is taken for one that hangs, and
# with ETUDE_LONG none for one that holds the others back (RELIABILITY.md R13). What is said
# of slow ranks follows clocks, and a machine that is shared may be slow for reasons that
# nobody sees in it: t/dist/straggle has the short form of that, without clocks.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use POSIX ();
use Processes;
use Test::More;
use Time::HiRes qw(sleep time);

plan skip_all => 'built without Gloo' unless $has_gloo;
my $long = $ENV{ETUDE_LONG};
my ($seconds, $timeout) = $long ? (600, '3s') : (5, '60s');

# All of it gives way to others a little, as to the test that runs beside this one. Among
# themselves nothing changes.
POSIX::nice(5);

# They end with the test, however it ends.
my $cores = `getconf _NPROCESSORS_ONLN` + 0;
my $test = $$;
my @busy;
for (1 .. 4 * $cores) {
    my $pid = fork // die;
    if (!$pid) {
        for (my $x = 1; getppid == $test;) { $x = ($x * 7 + $_) % 1000003 for 1 .. 200000 }
        POSIX::_exit(0);
    }
    push @busy, $pid;
}
END { kill 'KILL', @busy if $$ == $test }

# A batch takes some milliseconds, as the work that ranks are for does and more.
open my $recipe, '>', 'r.yaml' or die;
print $recipe <<'R';
max_duration: 100000000ba
seed: 3
model: {name: mlp, hidden: 256, layers: 2}
train_data: {name: synthetic_images, batch_size: 64, num_samples: 256, workers: 0}
optimizer: {name: sgd, lr: 0.001}
checkpoint: false
R
close $recipe;

my $front = start_with($etude, '', 'loaded', '-n', 2, '--timeout', $timeout);
ok until_true(sub { last_batch('loaded') > 0 }), "with @{[scalar @busy]} busy processes beside them two ranks train";
my $end = time + $seconds;
sleep 0.2 while time < $end && alive($front);
my $at = last_batch('loaded');
ok until_true(sub { last_batch('loaded') > $at }), "and still do after $seconds s";
kill 'TERM', $front;
is finish($front), 75, 'neither is taken for one that hangs';
my $log = slurp('loaded/logs/rank0.txt');
unlike $log, qr/did not arrive|has not moved/, 'nobody is named';
ok !-e 'loaded/dumps', 'nothing is dumped';
if ($long) {
    my @said = $log =~ /(rank \d holds every step back by .*)/g;
    is "@said", '', 'nor for one that holds the other back';
}
done_testing();
