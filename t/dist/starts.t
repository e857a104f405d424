#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Starts that do not come to an end: names that cannot be told, ranks that stand still before
# the first batch. Each ends, by itself or with one signal.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use POSIX qw(SIGTERM);
use Processes;
use Test::More;

# ---- names ----

my $odd = "x\xffy";
my $said = qr/error E\d+: the run directory x\\xffy\S*: byte 2 is not UTF-8/;
sub begin {
    my @more = @_;
    my $pid = fork // die;
    if (!$pid) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', 'odd.out';
        open STDERR, '>', 'odd.err';
        { exec $etude, 'train', @more, '--progress', 'none', 'max_duration=20ba' }
        POSIX::_exit(127);
    }
    return finish($pid);
}
is begin('r.yaml', '--run_directory', $odd), 64, 'a run directory that is not UTF-8 is refused: 64';
like slurp('odd.err'), $said, 'and named, visibly';
is begin('-d', 'r.yaml', '--run_directory', "$odd/a"), 64, 'in the background, too';
ok !-e $odd, 'nothing is made';
is begin('r.yaml', '--run_directory', 'fine'), 0, '(a run)';
rename 'fine', $odd;
is begin('--resume', $odd, 'max_duration=40ba'), 64, 'one that has such a name by now is not resumed';
like slurp('odd.err'), $said, 'and that is said';
mkdir "$odd/in";
system "cp r.yaml '$odd/in/$odd.yaml'";
is begin("$odd/in/$odd.yaml"), 0, 'a recipe may be called so';
{
    chdir "$odd/in" or die;
    is begin("$odd.yaml", '--run_directory', 'here'), 0, 'and the folder that one is in';
    chdir $dir or die;
}

# ---- ranks ----

for my $at (['init', 'before the model is there'], ['fit_start', 'before the first batch']) {
    my ($point, $when) = @$at;
    is finish(start_with($faults, "$point=stop", $point, '--timeout', '5s')), 5,
        "a rank that is stopped $when: hung, 5";
    like slurp("$point.err"), qr/error E6007: rank 0 has not moved for \d+ s: after batch 0, in starting; its process is stopped/,
        'named so';
}
is finish(start_with($faults, 'init=delay:15000', 'slow', '--timeout', '60s', 'max_duration=1ba')), 0,
    'one that waits for less is not';
# Before there is a run there is nothing to open: of a process that is stopped there.
is finish(start_with($faults, 'rank0:open=stop', 'early', '--timeout', '5s')), 5, 'a rank that is stopped before all that: 5';

my $n = 0;
for my $point (qw(init fit_start rank0:open)) {
    my $front = start_with($faults, "$point=stop", 'term' . ++$n, 'grace=1d');
    my ($boss, $rank);
    ok until_true(sub {
        ($boss) = children($front);
        ($rank) = grep { slurp("/proc/$_/stat") =~ /\) T / } $boss ? children($boss) : ();
        $rank;
    }), "a rank stands still at $point";
    kill 'TERM', $front;
    my $code = finish($front);
    is $code, 143, 'one SIGTERM ends the run: 143';
    ok until_true(sub { !alive($rank) }), 'and its rank';
}
done_testing();
