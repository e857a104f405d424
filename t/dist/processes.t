#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# A run is processes: what becomes of it when one of them dies, stands still, or is asked
# for something (RELIABILITY.md R02, R10 to R13, R15, R36, in short).
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use POSIX qw(:sys_wait_h SIGTERM);
use Processes;
use Test::More;
use Time::HiRes qw(sleep);

# ---- the one that shows it (R02, R12) ----

my $front = start('a');
my $boss = supervisor('a');
isnt $boss, $front, 'the run belongs to a process of its own';
kill 'HUP', $front;
kill 'KILL', $front;
finish($front);
my $at = last_batch('a');
ok until_true(sub { last_batch('a') > $at + 100 }), 'killing the one that shows it does not stop it';
my ($code, $out) = command('stop', 'a');
is $code, 0, 'etude stop';
ok until_true(sub { !alive($boss) }), 'ends it';
is field('a', 'state') . field('a', 'exit_code'), 'stopped75', 'saved: stopped, 75';
ok slurp('a/events.log') =~ /uid:\d+ stop -> stopping/, 'and who asked is in its log';
($code) = command('stop', 'a');
is $code, 69, 'one that has ended cannot be stopped: exit 69';

# ---- the hub (R02) ----

$front = start('b');
my $hub = until_true(sub { hub('b') });
ok $hub, 'a run has a hub';
kill 'KILL', $hub;
$at = last_batch('b');
ok until_true(sub { my $h = hub('b'); $h && $h != $hub }), 'which is back when it dies';
ok until_true(sub { last_batch('b') > $at }), 'and the run has gone on';

my $other = start('n');
$hub = until_true(sub { hub('n') });
kill 'STOP', $hub;
kill 'TERM', supervisor('n');
is finish($other), 75, 'a hub that stands still does not keep a run from its end';
ok until_true(sub { !alive($hub) }), 'and does not outlive it';

# ---- two of the same name ----

my @same = map { start("same$_", '--run_name', 'same') } 1, 2;
($code, $out) = command('stop', 'same2');
is $code, 0, 'of two runs of the same name' or diag $out;
is finish($same[1]), 75, 'the one that is meant is stopped';
$at = last_batch('same1');
ok until_true(sub { last_batch('same1') > $at }), 'and the other goes on';
command('stop', 'same1');
is finish($same[0]), 75, 'until it is told, too';

# ---- requests ----

ok until_true(sub { ($code, $out) = command('pause', 'b'); !$code }), 'the new one takes requests: pause'
    or diag $out;
ok until_true(sub { field('b', 'state') eq 'paused' }), 'the run says so';
my $then = batch_of('checkpoint', 'b');
sleep 0.5;
is batch_of('checkpoint', 'b'), $then, 'and trains nothing';
($code) = command('continue', 'b');
is $code, 0, 'etude continue';
ok until_true(sub { last_batch('b') > $then }), 'and it trains again';
($code) = command('annotate', 'b', '"look here"');
is $code, 0, 'a run under way can be annotated';
ok until_true(sub { slurp('b/events.log') =~ /look here/ }), 'in its log';
($code) = command('kill', 'b');
is $code, 0, 'etude kill';
is finish($front), 143, 'ends it at once: 143';
is field('b', 'state'), 'killed', 'and it is killed';

# ---- the supervisor (R02) ----

$front = start('c');
my @ranks = ranks('c');
$at = last_batch('c');
kill 'KILL', supervisor('c');
is finish($front), 1, 'without its supervisor a run ends';
like slurp('c.err'), qr/supervisor is gone/, 'and that is said';
ok until_true(sub { !grep { alive($_) } @ranks }), 'no rank is left';
my ($saved) = sort { $b cmp $a } map { m{step-0*(\d+)} ? sprintf('%012d', $1) : () } glob 'c/checkpoints/step-*';
cmp_ok $saved, '>=', $at, 'and it has saved what there was';
like((command('show', 'c'))[1], qr/crashed/, 'such a run is crashed');

# ---- signals (R10, R11) ----

for my $signal (qw(INT TERM USR2)) {
    $front = start("s$signal");
    kill $signal, $front;
    is finish($front), 75, "SIG$signal to the one that shows it: 75";
    is field("s$signal", 'state'), 'preempted', 'preempted';
}
$front = start('direct');
kill 'TERM', supervisor('direct');
is finish($front), 75, 'SIGTERM to the supervisor is as good';
# (With all the time in the world for the first.)
$front = start('twice', 'grace=1d');
my ($rank) = ranks('twice');
halt($rank);
kill 'TERM', supervisor('twice');
ok until_true(sub { has_pending($rank, SIGTERM) }), 'a rank that stands still is told to end';
kill 'TERM', supervisor('twice');
is finish($front), 143, 'the second signal ends it, whatever it is at';

# ---- crashes (R15) ----

$front = start('d');
kill 'SEGV', ranks('d');
is finish($front), 1, 'a rank that crashes ends the run: 1';
like slurp('d.err'), qr/rank 0 was ended by signal 11 .* after batch \d+/, 'it is named';
like slurp('d.err'), qr/its log: d\/logs\/rank0.txt/, 'with its log';
is field('d', 'state'), 'failed', 'failed';
my $because = qr/rank 0 was ended by signal 11 \(Segmentation fault\) after batch \d+/;
like slurp('d/run.json'), qr/"reason": "$because/, 'run.json says why';
like((command('show', 'd'))[1], qr/^  reason +$because/m, 'and so does show');
like((command('attach', 'd', '--dump-screen', '120x36'))[1], qr/because +$because/, 'and its last screen');

# (Of a model so large that the 200 steps that refill the budget take longer than this.)
$front = start('e', '--autoresume', 'model.hidden=1024', 'train_data.resolution=64',
    'train_data.num_samples=64', 'train_data.num_unique=64', 'train_data.batch_size=64');
($rank) = ranks('e');
kill 'KILL', $rank;
my ($again) = until_true(sub { my ($r) = ranks('e'); $r && $r != $rank ? $r : 0 });
ok $again, 'with --autoresume it is started again';
ok until_true(sub { field('e', 'incarnation') eq '2' && field('e', 'state') eq 'running' }), 'as its second start';
# Four kills, and more where one came so late that the budget was full again.
for (1 .. 40) {
    ($rank) = until_true(sub { (ranks('e'))[0] // 0 });
    last if !$rank;
    kill 'KILL', $rank;
    last if until_true(sub { waitpid($front, WNOHANG) == $front ? 1 : (((ranks('e'))[0] // $rank) != $rank ? 2 : 0) }) == 1;
}
is $? >> 8, 1, 'but not for ever: 1';
like slurp('e/logs/rank0.txt'), qr/it is started again in \d s/, 'each start is in its log';

# ---- hangs (R13) ----

$front = start('f', '--timeout', '5s');
kill 'STOP', ranks('f');
is finish($front), 5, 'a rank that stands still is hung: 5';
like slurp('f.err'), qr/rank 0 has not moved for \d s: after batch \d+/, 'and named';
is field('f', 'state'), 'hung', 'hung';
ok -s 'f/dumps/rank0.txt', 'with what the system knows of it';
like slurp('f/dumps/rank0.txt'), qr/${stands}etude/, 'and where it stood';

# ---- two of them (R36) ----

$front = start('g');
($code, $out) = command('train', 'r.yaml', '--autoresume', '--run_directory', 'g');
is $code, 69, 'a run has one supervisor: exit 69';
like $out, qr/g is active/, 'the other is told';
command('stop', 'g');
is finish($front), 75, 'etude stop, seen by the one that shows it: 75';
like slurp('g.err'), qr/stopped on request after batch \d+, and saved\n  hint: etude train --resume g\n/, 'with how to go on';
like slurp('g/logs/rank0.txt'), qr/ warn E6004: rank 0: stopped on request/, 'which is no error in its log';

# ---- two ranks ----

SKIP: {
    skip 'built without Gloo', 8 unless $has_gloo;
    $front = start('i', '-n', 2);
    @ranks = ranks('i');
    is scalar(@ranks), 2, '-n 2: two ranks';
    ok -e 'i/logs/rank1.txt', 'each with its log';
    ($code, $out) = (1);
    ok until_true(sub { ($code, $out) = command('pause', 'i'); !$code }), 'they pause together';
    $at = batch_of('checkpoint', 'i');
    sleep 0.3;
    is batch_of('checkpoint', 'i'), $at, 'both of them';
    ($code) = command('stop', 'i');
    is finish($front), 75, 'and a paused run stops: 75';
    $front = start('j', '-n', 2);
    @ranks = ranks('j');
    kill 'KILL', $ranks[1];
    is finish($front), 1, 'without one of them the run ends: 1';
    like slurp('j.err'), qr/rank [01] .*signal 9/, 'the first to go is named';
    ok !(grep { alive($_) } @ranks), 'and none is left';
}

# ---- left alone ----

($code, $out) = command('train', 'r.yaml', '-d', '--run_directory', 'h', '--run_name', 'h');
is $code, 0, 'train -d comes back';
like $out, qr/^h goes on \(1 rank\)/, 'and says that the run goes on';
ok until_true(sub { last_batch('h') > 10 }), 'which it does';
kill 'TERM', supervisor('h');
ok until_true(sub { field('h', 'state') eq 'preempted' }), 'and ends as any other';
done_testing();
