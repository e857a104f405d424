#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# What signals, a terminal and the launcher's options do to a run of processes
# (RELIABILITY.md R10 to R12, UX.md section 2).
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use POSIX ();
use Processes;
use Test::More;

my $n_ranks = $has_gloo ? 2 : 1;
sub saved { my ($run) = @_; return map { m{step-0*(\d+)$} } glob "$run/checkpoints/step-*" }

# ---- saved on demand, and on ----

for my $n (1 .. $n_ranks) {
    my $run = "save$n";
    my $front = start($run, '-n', $n, 'checkpoint.interval=100000000ba', 'checkpoint.keep=100');
    for my $times (1 .. 2) {
        kill 'USR1', $times == 1 ? $front : supervisor($run);
        ok until_true(sub { saved($run) == $times }), "SIGUSR1, $n rank(s): saved";
        my ($at) = (last_batch($run));
        ok until_true(sub { last_batch($run) > $at + 50 }), 'and it goes on';
    }
    is scalar(saved($run)), 2, 'once for each';
    kill 'HUP', supervisor($run), ranks($run);
    my $at = last_batch($run);
    ok until_true(sub { last_batch($run) > $at + 50 }), 'SIGHUP changes nothing';
    kill 'USR2', supervisor($run);
    is finish($front), 75, 'SIGUSR2: saved, 75';
    my @all = saved($run);
    is $all[-1], last_batch($run), 'no batch is lost';
}

# ---- while matrices are multiplied ----

# A handler that runs there overwrites the heap (src/cli/signals.c): of ten runs without a
# thread that takes signals one ended by its first.
my $stormy = start('stormy', 'checkpoint.interval=100000000ba', 'checkpoint.keep=1');
my $hit;
until_true(sub { ($hit) = ranks('stormy'); $hit && last_batch('stormy') > 0 });
for (1 .. 200) {
    kill 'USR1', $hit;
    select undef, undef, undef, 0.003;
}
my $after = last_batch('stormy');
ok until_true(sub { last_batch('stormy') > $after + 50 }), 'two hundred signals to one rank: it goes on';
kill 'INT', supervisor('stormy');
is finish($stormy), 75, 'and ends as it is asked to';
is((saved('stormy'))[-1], last_batch('stormy'), 'with no batch lost');

# ---- a signal to one rank alone ----

if ($has_gloo) {
    # When the second is passed on, the first has been to all it is for.
    my $run = start('first', '-n', 2, 'grace=1d', 'checkpoint.interval=100000000ba');
    my @ranks = ranks('first');
    halt($_) for @ranks;
    for my $number (POSIX::SIGUSR1(), POSIX::SIGUSR2()) {
        kill $number, supervisor('first');
        ok until_true(sub { grep { has_pending($_, $number) } @ranks }), "signal $number is passed on";
    }
    is scalar(grep { has_pending($_, POSIX::SIGUSR1()) } @ranks), 1, 'SIGUSR1 to one rank, so that it is one save';
    kill 'CONT', @ranks;
    is finish($run), 75, 'SIGUSR2 ends the run: 75';

    my $front = start('one', '-n', 2);
    kill 'TERM', (ranks('one'))[1];
    is finish($front), 75, 'SIGTERM to rank 1 alone ends the run: 75';
    is((saved('one'))[-1], last_batch('one'), 'no batch is lost');
}

# ---- before there is anything to save ----

my $front = start_with($faults, 'init=delay:3000', 'early');
ok until_true(sub { supervisor('early') && ranks('early') }), 'a run that is starting';
kill 'USR1', supervisor('early'), ranks('early');
ok until_true(sub { last_batch('early') > 10 }), 'is not ended by SIGUSR1';
kill 'INT', $front;
is finish($front), 75, 'and by SIGINT as any other';

# ---- before the supervisor listens ----

# It forgets what a terminal sent to both; what the front has got is passed on later.
$front = start_with($faults, 'supervisor=delay:2000', 'soon');
ok until_true(sub { children($front) }), 'a run whose supervisor takes its time';
kill 'TERM', $front;
like finish($front), qr/^(?:143|75)$/, 'one SIGTERM ends it';

# ---- too long ----

# The copy that a checkpoint begins with takes a day.
$front = start_with($faults, 'checkpoint.snapshot=delay:86400000@2', 'long', 'grace=1s');
ok until_true(sub { saved('long') }), 'a run with a checkpoint';
kill 'TERM', supervisor('long');
is finish($front), 143, 'a save that takes longer than the grace is not waited for: 143';
is field('long', 'state'), 'killed', 'killed';
like slurp('long.err'), qr/without a checkpoint of its last batch\n  hint: etude train --resume long$/m, 'with how to go on';
my ($last) = (saved('long'))[-1];
is finish(start_with($etude, '', 'long', '--autoresume', 'max_duration=' . ($last + 5) . 'ba')), 0,
    'the last checkpoint stands, and the run goes on from it';

# A rank that crashes while it saves was not too slow.
$front = start_with($faults, 'checkpoint.snapshot=crash', 'fell', 'checkpoint.interval=100000000ba');
ok until_true(sub { last_batch('fell') > 0 }), 'a run without a checkpoint';
kill 'TERM', supervisor('fell');
is finish($front), 1, 'a crash after SIGTERM is one: 1';
is field('fell', 'state'), 'failed', 'the run has failed';
like slurp('fell.err'), qr/rank 0 was ended by signal 11 \(/, 'which is said';
like slurp('fell/dumps/rank0.txt'), qr/^-- what it did last, /m, 'with what the rank did last';

# A rank that is stopped does not see its time go by: the supervisor does.
$front = start('stopped', 'grace=1s');
kill 'STOP', ranks('stopped');
kill 'TERM', supervisor('stopped');
is finish($front), 143, 'nor is a rank that is stopped: 143';
is field('stopped', 'state'), 'killed', 'killed';

# ---- the second one ----

$front = start('second', 'grace=1d');
my ($rank) = ranks('second');
halt($rank);
kill 'INT', $front;
ok until_true(sub { has_pending($rank, POSIX::SIGINT()) }), 'a rank that stands still is told to end';
kill 'INT', $front;
is finish($front), 130, 'a second SIGINT ends the run, whatever it is at: 130';
is field('second', 'state'), 'killed', 'killed';

# ---- a rank of somebody else's launcher ----

# Nobody kills it but itself: its 20th batch never ends. (What it says is behind the 19th.)
for my $case (['INT', 'TERM', '1d', 143, 'a second signal ends it at once: 128 + that'],
    ['INT', '', '1s', 130, 'its grace is over: 128 + the signal that came']) {
    my ($first, $second, $grace, $want, $what) = @$case;
    my $run = "alone$want";
    local @ENV{qw(RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE)} = (0, 0, 1, 1);
    my $pid = start_with($faults, 'batch_end=say@19;before_forward=spin@20', $run, "grace=$grace");
    ok until_true(sub { slurp("$run.out") =~ /out: batch_end/ }), 'a rank that has no supervisor, and stands still';
    kill $first, $pid;
    ok until_true(sub { !has_pending($pid, POSIX::SIGINT()) }), 'is told to end';
    kill $second, $pid if $second;
    is finish($pid), $want, $what;
}

# ---- while it is being started again ----

for my $when ('before', 'while') {
    $front = start_with($faults, 'batch_end=crash@60;rank0:open=delay:2000', $when, '--autoresume');
    ok until_true(sub { slurp("$when/logs/rank0.txt") =~ /it is started again/ }), 'a run that is started again';
    until_true(sub { ranks($when) }) if $when eq 'while';
    kill 'TERM', supervisor($when);
    is finish($front), 75, "and is to end $when it begins: what there was is saved, 75";
    is field($when, 'state'), 'preempted', 'preempted';
}

# ---- on a terminal ----

# Begins a run on a terminal of its own: pid, its other side.
sub on_terminal {
    my ($run, $points, @more) = @_;
    my ($number, $lock) = (pack('i', 0), pack('i', 0));
    open my $master, '+<', '/dev/ptmx' or return;
    my ($unlock, $get) = (0x40045431, 0x80045430);    # TIOCSPTLCK, TIOCGPTN
    ioctl($master, $unlock, $lock) && ioctl($master, $get, $number) or return;
    my $pid = fork // die;
    if (!$pid) {
        POSIX::setsid();
        open STDIN, '+<', '/dev/pts/' . unpack 'i', $number or POSIX::_exit(126);
        open STDOUT, '>&', \*STDIN;
        open STDERR, '>&', \*STDIN;
        $ENV{ETUDE_FAILPOINTS} = $points // '';
        { exec $points ? $faults : $etude, 'train', 'r.yaml', '--run_directory', $run, '--run_name', $run,
            '--progress', 'bar', @more }
        POSIX::_exit(127);
    }
    $master->blocking(0);
    # Until then it does not know of a run to ask about.
    until_true(sub { read_all($master) =~ /$run/ && last_batch($run) > 10 });
    return ($pid, $master);
}

my $seen = '';
sub read_all { my ($from) = @_; while (sysread $from, my $text, 4096) { $seen .= $text } return $seen }
sub shows { my ($from, $what) = @_; return until_true(sub { read_all($from) =~ $what }) }
# Its end, with what it shows read meanwhile.
sub leave {
    my ($pid, $from) = @_;
    until_true(sub { read_all($from); waitpid($pid, POSIX::WNOHANG()) == $pid }) or return 'still there';
    read_all($from);
    return $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
}

my $question = qr/enter leave it running, s stop with a checkpoint/;
SKIP: {
    my ($pid, $terminal) = on_terminal('leave');
    skip 'no terminals here', 19 unless $pid;
    syswrite $terminal, "\x03";
    ok shows($terminal, $question), 'ctrl-C on a terminal asks';
    syswrite $terminal, "\n";
    is leave($pid, $terminal), 0, 'enter: exit 0';
    like $seen, qr/leave goes on \(1 rank\)/, 'the run goes on, and that is said';
    my $at = last_batch('leave');
    ok until_true(sub { last_batch('leave') > $at + 10 }), 'which it does';
    command('kill', 'leave');

    ($seen) = ('');
    ($pid, $terminal) = on_terminal('halt');
    syswrite $terminal, "\x03";
    shows($terminal, $question);
    syswrite $terminal, "x\n";
    $at = last_batch('halt');
    # (Its bar shows that the answer has been read: ctrl-C before that would be another.)
    ok until_true(sub { read_all($terminal) =~ /checkpoint: x\r\n.*Epoch/s && last_batch('halt') > $at + 10 }),
        'another answer: it goes on as before';
    ($seen) = ('');
    syswrite $terminal, "\x03";
    ok shows($terminal, $question), 'and is asked again';
    syswrite $terminal, "s\n";
    is leave($pid, $terminal), 75, 's: saved, 75';
    is field('halt', 'state'), 'preempted', 'preempted';
    is((saved('halt'))[-1], last_batch('halt'), 'no batch is lost');

    ($seen) = ('');
    ($pid, $terminal) = on_terminal('again');
    syswrite $terminal, "\x03";
    shows($terminal, $question);
    syswrite $terminal, "\x03";
    is leave($pid, $terminal), 75, 'ctrl-C again instead of an answer: saved too, 75';

    ($seen) = ('');
    ($pid, $terminal) = on_terminal('told', undef, 'checkpoint.interval=100000000ba');
    kill 'USR1', $pid;
    ok until_true(sub { read_all($terminal); saved('told') == 1 }), 'SIGUSR1 to what has a terminal: saved';
    $at = last_batch('told');
    ok until_true(sub { read_all($terminal); last_batch('told') > $at + 10 }), 'and it goes on';
    kill 'TERM', $pid;
    is leave($pid, $terminal), 75, 'SIGTERM to it: saved, 75';
    unlike $seen, $question, 'neither asks';
    is field('told', 'state'), 'preempted', 'preempted';

    ($seen) = ('');
    ($pid, $terminal) = on_terminal('over', 'batch_end=delay:50@*', 'max_duration=200ba');
    syswrite $terminal, "\x03";
    shows($terminal, $question);
    is leave($pid, $terminal), 0, 'a run that ends before the answer needs none: its exit';
    like $seen, qr/over: finished after 200 batches/, 'and its result';

    ($seen) = ('');
    ($pid, $terminal) = on_terminal('hup');
    close $terminal;
    $at = last_batch('hup');
    ok until_true(sub { last_batch('hup') > $at + 10 }), 'a terminal that is closed ends no run';
    command('stop', 'hup');
    is finish($pid), 75, 'whose front is there until its end';
}

# ---- what ranks print ----

my $format = '{rank}-{local_rank}-{world_size}-{local_world_size}-{node_rank}';
is finish(start_with($faults, 'batch_end=say@2', 'print', '-n', $n_ranks, 'max_duration=4ba',
    '--stdout', "o-$format.txt", '--stderr', "$dir/e-$format.txt")), 0, 'a run with files for what ranks print';
for my $rank (0 .. $n_ranks - 1) {
    my $name = "$rank-$rank-$n_ranks-$n_ranks-0.txt";
    is slurp("print/o-$name"), "out: batch_end\n", "--stdout of rank $rank, in the run directory, every field filled in";
    is slurp("$dir/e-$name"), "err: batch_end\n", '--stderr, where an absolute path says';
    like slurp("print/logs/rank$rank.txt"), qr/out: batch_end/, 'and its log has both';
}
is finish(start_with($faults, '', 'nowhere', 'max_duration=2ba', '--stdout', 'no/such/{rank}.txt')), 0,
    'a file that cannot be made ends no run';
like slurp('nowhere.err'), qr{warn: cannot write nowhere/no/such/0\.txt: No such file}, 'and is told of';
my ($code, $out) = command(q(train r.yaml --stderr 'e{rnak}.txt'));
is $code, 64, 'a field that there is not: exit 64';
like $out, qr/--stderr: no field is called \{rnak\}\n  hint: the fields are \{rank\} \{local_rank\}/, 'with those that there are';

# ---- flags against the environment ----

for my $case (
    ['WORLD_SIZE=2', '-n 2 --base_rank 1', 64, 'base_rank 1 (--base_rank) + nproc 2 (--nproc) > world_size 2 (WORLD_SIZE)'],
    ['SLURM_NTASKS=2', '-n 3', 64, 'base_rank 0 (default) + nproc 3 (--nproc) > world_size 2 (SLURM_NTASKS)'],
    ['LOCAL_WORLD_SIZE=4', '--world_size 2', 64, 'base_rank 0 (default) + nproc 4 (LOCAL_WORLD_SIZE) > world_size 2 (--world_size)'],
    ['BASE_RANK=2 WORLD_SIZE=2', '', 64, 'base_rank 2 (BASE_RANK) + nproc 1 (default) > world_size 2 (WORLD_SIZE)'],
    ['WORLD_SIZE=4', '-n 2', 69, 'world_size 4 (WORLD_SIZE), nproc 2 (--nproc)'],
    ['RANK=1', '', 69, 'RANK=1 without LOCAL_RANK'],
    ['MASTER_PORT=x', '', 64, "MASTER_PORT: expected a number >= 1, got 'x'"],
) {
    my ($environment, $flags, $want, $text) = @$case;
    my $said = `$environment $etude train r.yaml --run_directory refused $flags 2>&1`;
    is $? >> 8, $want, "$environment and '$flags': exit $want";
    ok index($said, $text) >= 0, $text or diag $said;
}
ok !-e 'refused', 'before any process starts, and any directory is made';
done_testing();
