#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# A run that is killed, wherever that may be, and started again is the run that nobody
# killed: losses, rates, gradient norms, evaluations, bit for bit (RELIABILITY.md R01,
# R03, R10, R11). Killed at points that are spread over all there are (every one with
# ETUDE_LONG), at random instants, twice in a row, and asked to stop by signals.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use POSIX qw(:sys_wait_h :signal_h);
use Test::More;
use Time::HiRes qw(sleep time);

my $build = abs_path($ENV{ET_BUILDDIR} || '.');
my $long = $ENV{ETUDE_LONG};
my $program = "$build/t/torture/faults";
my $dir = tempdir('etude-torture.XXXXXX', TMPDIR => 1, CLEANUP => 1);
chdir $dir or die;
$ENV{OMP_NUM_THREADS} = 2;
$ENV{ETUDE_CONFIG_DIR} = "$dir/no-config";
$ENV{XDG_STATE_HOME} = "$dir/state";
$ENV{ETUDE_DEVICE} = 'ref' unless -e "$build/libetude-cpu.la";
delete @ENV{qw(WORLD_SIZE LOCAL_WORLD_SIZE SLURM_NTASKS RANK BASE_RANK NODE_RANK)};
# One process: what is killed is the one that trains (t/dist kills the others).
@ENV{qw(RANK LOCAL_RANK)} = (0, 0);
my $seed = $ENV{ETUDE_TORTURE_SEED} // time % 1000000;
srand $seed;
diag "seed $seed";

open my $recipe, '>', 'r.yaml' or die;
print $recipe <<'R';
max_duration: 26ba
seed: 5
model: {name: lenet}
train_data: {name: synthetic_images, num_samples: 64, num_unique: 64, type: separable, resolution: 16,
             batch_size: 8, workers: 2,
             transforms: [{random_crop: {size: 12, padding: 2}}, horizontal_flip]}
eval_data: {name: synthetic_images, num_samples: 16, type: separable, resolution: 16, batch_size: 16,
            transforms: [{center_crop: {size: 12}}]}
eval_interval: 5ba
optimizer: {name: adamw, lr: 0.01}
scheduler: {name: cosine_with_warmup, t_warmup: 4ba}
algorithms:
  mixup:
  ema: {half_life: 3ba}
  gradient_clipping: {clipping_type: norm, clipping_threshold: 1.0}
callbacks: {optimizer_monitor: {log_optimizer_metrics: false}}
checkpoint: {interval: 4ba, keep: 2}
grace: 0s
R
close $recipe;

# Starts a run in $folder that continues what is there; a fault may be given.
sub start {
    my ($folder, $points) = @_;
    my $pid = fork // die "fork: $!";
    return $pid if $pid;
    $ENV{ETUDE_FAILPOINTS} = $points // '';
    open STDOUT, '>', "$folder.out";
    open STDERR, '>', "$folder.err";
    open STDIN, '<', '/dev/null';
    { exec $program, 'train', 'r.yaml', '--autoresume', '--run_directory', $folder, '--progress', 'none' }
    POSIX::_exit(127);
}

sub finish {
    my ($pid) = @_;
    waitpid $pid, 0;
    return $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
}

# What the run came to: for each batch and evaluation its numbers, the last line of each.
# Times, memory and rates of work differ from run to run.
sub result {
    my ($folder) = @_;
    my %line;
    open my $f, '<', "$folder/metrics.jsonl" or return 'no metrics.jsonl';
    while (<$f>) {
        my ($ev, $ba) = /"ev":"(\w+)","ep":\d+,"ba":(\d+)/ or return "not a line: $_";
        next if $ev eq 'resume';
        my ($m) = /"m":\{(.*)\}/;
        my @kept = grep { !m{^"(time/(train|val|total|remaining)|memory|throughput|wall)} } split /,/, $m;
        $line{sprintf '%06d %s', $ba, $ev} = join ',', sort @kept;
    }
    return join "\n", map { "$_ $line{$_}" } sort keys %line;
}

# Waits until CODE is true, for as long as no machine takes; its value.
sub until_true {
    my ($code) = @_;
    my $end = time + 120;
    while (time < $end) { my $v = $code->(); return $v if $v; sleep 0.02 }
    return $code->();
}

sub read_file {
    my ($path) = @_;
    open my $f, '<', $path or return '';
    local $/;
    return <$f> // '';
}

# Goes on until it ends well; every further start is without a fault.
sub recover {
    my ($folder) = @_;
    for (1 .. 3) {
        my $code = finish(start($folder));
        return '' if $code eq '0';
        return "$code: " . read_file("$folder.err") if $code ne '75';
    }
    return 'it does not end';
}

my $whole;
# The run in $folder, recovered, is the one that nobody killed; nothing is left behind.
sub is_whole {
    my ($folder) = @_;
    my $why = recover($folder);
    return "does not go on: $why" if $why;
    my $got = result($folder);
    if ($got ne $whole) {
        my @a = split /\n/, $whole;
        my @b = split /\n/, $got;
        for (0 .. $#a) {
            return "line $_ is " . ($b[$_] // 'missing') . ", not $a[$_]" if ($b[$_] // '') ne $a[$_];
        }
        return 'more lines than there should be';
    }
    opendir my $d, "$folder/checkpoints" or return 'no checkpoints';
    my @left = grep { /^\.(tmp|del)/ } readdir $d;
    return "left: @left" if @left;
    system 'rm', '-rf', $folder;
    return '';
}

# ---- the run that nobody kills ----

$ENV{ETUDE_FAILPOINTS_COUNT} = "$dir/count";
is(finish(start('whole')), 0, 'a run that nobody kills ends well') or diag read_file('whole.err');
delete $ENV{ETUDE_FAILPOINTS_COUNT};
$whole = result('whole');
my $points = read_file("$dir/count") + 0;
cmp_ok($points, '>', 500, "it passes many points ($points)");
like($whole, qr{l2_norm/grad/global}, 'gradient norms are compared');
is(finish(start('again')), 0, 'again');
is(result('again'), $whole, 'the same run gives the same numbers');

ok(!grep({ /FAILPOINTS/ } `nm -a "$build/etude" 2>/dev/null; strings "$build/etude" 2>/dev/null`),
    'the program that people run knows no failpoints');

# ---- killed at each point, or at some of them ----

my $wanted = $long ? $points : 40;
my ($tried, $killed, @wrong) = (0, 0);
for my $i (0 .. $wanted - 1) {
    note "$i of $wanted" if $i % 10 == 0;    # it goes on, however slow the machine is (t/limit.pl)
    my $k = 1 + int(($i + ($long ? 0 : rand)) * $points / $wanted);
    my $code = finish(start('point', "*=kill\@$k"));
    $tried++;
    $killed++ if $code eq 'signal 9';
    my $why = is_whole('point');
    push @wrong, "point $k: $why" if $why;
    system 'rm', '-rf', 'point';
    last if @wrong > 3;
}
is("@wrong", '', "killed at $wanted of $points points, it goes on bit for bit");
cmp_ok($killed, '>', 0.9 * $tried, "it was killed there ($killed of $tried)");

# ---- killed at points of a resume, after having been killed ----

@wrong = ();
for (1 .. ($long ? 300 : 8)) {
    my $first = 1 + int rand $points;
    finish(start('twice', "*=kill\@$first"));
    my $second = 1 + int rand($points / 3);
    finish(start('twice', "*=kill\@$second"));
    my $why = is_whole('twice');
    push @wrong, "$first, then $second: $why" if $why;
    system 'rm', '-rf', 'twice';
}
is("@wrong", '', 'killed again while it goes on, it goes on');

# ---- killed at random instants ----

my $length = do { my $t = time; finish(start('timed')); system 'rm', '-rf', 'timed'; time - $t };
@wrong = ();
for (1 .. ($long ? 500 : 10)) {
    my $pid = start('instant');
    my $wait = rand $length;
    sleep $wait;
    kill 'KILL', $pid;
    finish($pid);
    my $why = is_whole('instant');
    push @wrong, sprintf('after %.3f s: %s', $wait, $why) if $why;
    system 'rm', '-rf', 'instant';
}
is("@wrong", '', 'killed at any instant, it goes on');

# ---- a disk that is full when it is killed ----

@wrong = ();
for my $k (map { 1 + int rand 40 } 1 .. ($long ? 60 : 4)) {
    finish(start('full', "write=errno:ENOSPC\@$k;rename=kill\@" . (1 + int rand 8)));
    my $why = is_whole('full');
    push @wrong, "write $k: $why" if $why;
    system 'rm', '-rf', 'full';
}
is("@wrong", '', 'a write that fails and then a kill lose nothing');

# ---- signals: nothing at all is lost ----

# Has signal NUMBER been sent to a process that has not taken it yet?
sub is_pending {
    my ($pid, $number) = @_;
    return read_file("/proc/$pid/status") =~ /^ShdPnd:\s*([0-9a-f]+)/m && hex($1) >> $number - 1 & 1;
}
sub has_ended { my ($pid) = @_; return read_file("/proc/$pid/stat") !~ /\) [^ZX] / }

sub last_batch {
    my ($folder) = @_;
    my ($last) = read_file("$folder/metrics.jsonl") =~ /.*"ev":"batch","ep":\d+,"ba":(\d+)/s;
    return $last // 0;
}

# At a batch that is drawn, at which it stands still until the signal is there, and at
# instants that are.
@wrong = ();
my $stopped = 0;
for my $i (1 .. ($long ? 330 : 15)) {
    my $signal = (qw(TERM INT USR2))[$i % 3];
    my $in_batch = $i <= ($long ? 30 : 3);
    my $pid = start('signal', $in_batch ? 'batch_end=stop@' . (1 + int rand 20) : '');
    if ($in_batch) {
        until_true(sub { read_file("/proc/$pid/stat") =~ /\) T / || has_ended($pid) });
    } else {
        sleep rand $length;
    }
    kill $signal, $pid;
    kill 'CONT', $pid if $in_batch;
    my $code = finish($pid);
    push @wrong, "$signal in a batch: exit $code" if $in_batch && $code ne '75';
    my @steps = sort glob 'signal/checkpoints/step-*';
    my $saved = @steps && $steps[-1] =~ /step-0*(\d+)$/ ? $1 : 0;
    $stopped++ if $code eq '75' && $in_batch;
    # Before the program has set its handlers the signal ends it, and there is nothing to lose.
    push @wrong, "$signal: exit $code" if $code !~ /^(75|0|signal (2|12|15))$/;
    push @wrong, "$signal: at batch " . last_batch('signal') . ", saved $saved"
        if $code eq '75' && $saved != last_batch('signal');
    my $why = is_whole('signal');
    push @wrong, "$signal: $why" if $why;
    system 'rm', '-rf', 'signal';
}
is("@wrong", '', 'a signal loses no step');
is($stopped, $long ? 30 : 3, 'and each stops a run after its batch');

# Beside a write that does not come back: what waits for that never ends, and there is no
# grace. (Two signals that a process has not taken yet would be one.)
@wrong = ();
for (1 .. ($long ? 100 : 4)) {
    my $pid = start('second', 'write=delay:100000000@' . (10 + int rand 60));
    sleep rand $length;
    kill 'TERM', $pid;
    until_true(sub { !is_pending($pid, 15) || has_ended($pid) }); # one that has ended takes none
    kill 'TERM', $pid;
    until_true(sub { has_ended($pid) }) or push @wrong, 'it does not end' and kill 'KILL', $pid;
    my $code = finish($pid);
    push @wrong, "exit $code" if $code !~ /^(143|75|0|signal 15)$/;
    my $why = is_whole('second');
    push @wrong, $why if $why;
    system 'rm', '-rf', 'second';
}
is("@wrong", '', 'a second signal ends it at once, and the last checkpoint stands');

done_testing;
