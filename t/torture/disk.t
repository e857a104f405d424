#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# A disk that is full, read-only or gone while a run trains (RELIABILITY.md R08, R09):
# training goes on, the next save is good once there is room, and a run whose last state
# could not be saved says so. In a user namespace, with a file system of 8 MiB.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Temp qw(tempdir);
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

my $build = abs_path($ENV{ET_BUILDDIR} || '.');
if (!$ENV{ETUDE_IN_NAMESPACE}) {
    plan skip_all => 'user namespaces with mounts are not allowed here'
        if system("unshare -rm sh -c 'mount -t tmpfs none /mnt' 2>/dev/null") != 0;
    $ENV{ETUDE_IN_NAMESPACE} = 1;
    { exec 'unshare', '-rm', $^X, abs_path($0) }
    die "unshare: $!";
}
my $dir = tempdir('etude-disk.XXXXXX', TMPDIR => 1, CLEANUP => 1);
chdir $dir or die;
$ENV{OMP_NUM_THREADS} = 1;
$ENV{ETUDE_CONFIG_DIR} = "$dir/no-config";
$ENV{XDG_STATE_HOME} = "$dir/state";
$ENV{ETUDE_DEVICE} = 'ref' unless -e "$build/libetude-cpu.la";
delete @ENV{qw(WORLD_SIZE LOCAL_WORLD_SIZE SLURM_NTASKS RANK BASE_RANK NODE_RANK)};

# Some 1.6 MB a checkpoint, a save every 200 batches.
open my $recipe, '>', 'r.yaml' or die;
print $recipe <<'R';
max_duration: 100000000ba
seed: 5
model: {name: mlp, hidden: 256, layers: 1}
train_data: {name: synthetic_images, num_samples: 64, num_unique: 64, resolution: 16, batch_size: 8, workers: 1}
optimizer: {name: sgd, lr: 0.001, momentum: 0.9}
loggers: {jsonl: false}
checkpoint: {interval: 200ba, keep: 2}
R
close $recipe;

sub start {
    my ($folder) = @_;
    my $pid = fork // die "fork: $!";
    return $pid if $pid;
    open STDOUT, '>', 'out';
    open STDERR, '>', 'err';
    { exec "$build/etude", 'train', 'r.yaml', '--run_directory', $folder, '--progress', 'plain', '--every', '1h' }
    POSIX::_exit(127);
}

sub read_file {
    my ($path) = @_;
    open my $f, '<', $path or return '';
    local $/;
    return <$f> // '';
}

# Waits for $condition, for as long as no machine takes.
sub wait_for {
    my ($condition) = @_;
    my $end = time + 120;
    sleep 0.02 while !$condition->() && time < $end;
    return $condition->();
}

sub finish {
    my ($pid, $signal) = @_;
    kill $signal, $pid;
    waitpid $pid, 0;
    return $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
}

sub newest {
    my ($folder) = @_;
    my @steps = sort glob "$folder/checkpoints/step-*";
    return @steps && $steps[-1] =~ /step-0*(\d+)$/ ? $1 : 0;
}

sub mount_small {
    mkdir 'd';
    system('mount', '-t', 'tmpfs', '-o', 'size=8m', 'none', 'd') == 0 or die;
}

# No byte is left; what a save that fails gives back is taken the next time.
sub fill { system "dd if=/dev/zero bs=64k 2>/dev/null >>d/filler" }

# ---- full, then not ----

mount_small;
my $pid = start('d/run');
ok(wait_for(sub { newest('d/run') > 0 }), 'a checkpoint is saved where there is room');
fill;
my $last = newest('d/run');
ok(wait_for(sub { read_file('err') =~ /was not saved/ }), 'on a full disk one is not, which is said');
like(read_file('err'), qr/No space left on device/, 'and why');
like(read_file('err'), qr/a checkpoint needs .*, .* are free/, 'with how much it needs and there is');
is(kill(0, $pid), 1, 'training goes on');
cmp_ok(newest('d/run'), '>=', $last, 'the last checkpoint is still there');
ok(wait_for(sub { fill; read_file('err') =~ /cannot write events\.log: No space/ }), 'nor are its events, which is said');
unlink 'd/filler';
$last = newest('d/run');
ok(wait_for(sub { newest('d/run') > $last }), 'once there is room the next save is good');
ok(wait_for(sub { read_file('err') =~ /events\.log is written again/ }), 'and its events are written again');
is(finish($pid, 'TERM'), 75, 'and the run is stopped and saved');
is(scalar(glob 'd/run/checkpoints/.tmp-*'), undef, 'nothing half written is left');
system "'$build/etude' weights ls d/run >out 2>&1";
is($?, 0, 'its newest checkpoint verifies');

# ---- full at the end ----

$pid = start('d/end');
wait_for(sub { newest('d/end') > 0 });
# (The disk may be full before an old checkpoint goes: then there is room for another.)
wait_for(sub { fill; read_file('err') =~ /was not saved/ });
fill;
is(finish($pid, 'TERM'), 73, 'a last state that cannot be saved: exit 73');
like(read_file('err'), qr/could not be saved/, 'the run says so');
like(read_file('d/end/run.json'), qr/"state": "failed",\s+"exit_code": 73/, 'and so does its run.json, on a disk that is still full');
unlink 'd/filler';

# ---- gone, or read-only, while it trains ----

$pid = start('d/gone');
wait_for(sub { newest('d/gone') > 0 });
# (What is made in a folder that is being removed keeps it.)
wait_for(sub { system 'rm -rf d/gone 2>/dev/null'; !-e 'd/gone' });
ok(wait_for(sub { read_file('err') =~ /was not saved/ }), 'where its folder is gone the run says so');
is(kill(0, $pid), 1, 'and goes on');
is(finish($pid, 'TERM'), 73, 'to an end without a checkpoint');

$pid = start('d/fixed');
wait_for(sub { newest('d/fixed') > 0 });
$last = newest('d/fixed');
# Files that are open for writing keep a file system from becoming read-only: a mount
# of the folder on itself does not ask.
system('mount --bind d/fixed/checkpoints d/fixed/checkpoints && mount -o remount,bind,ro d/fixed/checkpoints') == 0
    or diag 'no read-only mount';
ok(wait_for(sub { read_file('err') =~ /Read-only file system/ }), 'where it became read-only likewise');
cmp_ok(newest('d/fixed'), '>=', $last, 'what was saved stays');
is(finish($pid, 'TERM'), 73, 'the last state could not be saved');
system 'umount', 'd/fixed/checkpoints';
system('mount', '-o', 'remount,ro', 'd') == 0 or die 'no read-only disk';
is(finish(start('d/new'), 'CONT'), 73, 'a run that cannot write its folder does not begin: exit 73');
like(read_file('err'), qr/^etude: error E7002: cannot .*Read-only file system/m, 'with one line');
system 'umount', 'd';
done_testing;
