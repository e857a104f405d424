#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# Jobs of others' launchers on one machine: torchrun, Open MPI's mpirun, Slurm. What each puts
# into the environment is imitated; where the programs are, they run, too.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Processes;
use Sys::Hostname;
use Test::More;

my @train = ('train', 'r.yaml', '--progress', 'none', 'max_duration=20ba');
my $n = 0;
my $own = hostname();

# Begins etude with variables {NAME => VALUE}; its process.
sub begin {
    my ($env, @more) = @_;
    my $pid = fork // die;
    if (!$pid) {
        @ENV{keys %$env} = values %$env;
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', "p$n.out";
        open STDERR, '>', "p$n.err";
        { exec $etude, @train, @more }
        POSIX::_exit(127);
    }
    $n++;
    return $pid;
}
# Two of them, with what each has in @$own; how they ended, and what they said.
sub two {
    my ($all, $own, @more) = @_;
    my $first = $n;
    my @pid = map { begin({%$all, %$_}, @more) } @$own;
    return (join(' ', map { finish($_) } @pid), join '', map { slurp("p$_.out") . slurp("p$_.err") } $first .. $n - 1);
}
sub one { my ($env, @more) = @_; my $pid = begin($env, @more); my $k = $n - 1; return (finish($pid), slurp("p$k.err")) }
# The runs that there are, and how many ranks the newest had.
sub runs { return my @all = sort { -M "$b/run.json" <=> -M "$a/run.json" } map { m{(.*)/run.json} } glob 'runs/*/run.json' }
my @ranks = ([0, 1], [1, 0]); # begun in either order

SKIP: {
    skip 'built without Gloo', 15 unless $has_gloo;

    # ---- torchrun, whose agent has MASTER_PORT ----

    require IO::Socket::INET;
    my $agent = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1', Proto => 'tcp') or die;
    my %torch = (WORLD_SIZE => 2, LOCAL_WORLD_SIZE => 2, MASTER_ADDR => 'localhost', MASTER_PORT => $agent->sockport,
        TORCHELASTIC_RUN_ID => 'a/b c', TORCHELASTIC_RESTART_COUNT => 0, TORCHELASTIC_USE_AGENT_STORE => 'True');
    for my $order (@ranks) {
        my ($codes, $said) = two(\%torch, [map { {RANK => $_, LOCAL_RANK => $_} } @$order]);
        is $codes, '0 0', "torchrun's ranks @$order meet, though its agent has MASTER_PORT" or diag $said;
    }
    my ($codes, $said) = two({%torch, MASTER_ADDR => $own}, [map { {RANK => $_, LOCAL_RANK => $_} } 0, 1]);
    is $codes, '0 0', "and where MASTER_ADDR is this machine's name" or diag $said;
    close $agent;
    my ($code, $err) = one({%torch, RANK => 0, LOCAL_RANK => 0}, '-n', 2);
    is $code, 64, '-n is no business of a rank of somebody else: 64';
    like $err, qr/--nproc 2: this process is rank 0 of 2 that torchrun has started/, 'which is said';
    ($code, $err) = one({%torch, RANK => 1, LOCAL_RANK => 1, ETUDE_RANK_TIMEOUT => 1});
    isnt $code, 0, 'a rank alone waits no longer than it is told to';
    like $err, qr/rank 0 of torchrun a\/b c 0 \d+ has left no word at \S+ in 1 s/, 'and says for what';

    # ---- Open MPI ----

    my %mpi = (OMPI_COMM_WORLD_SIZE => 2, OMPI_COMM_WORLD_LOCAL_SIZE => 2, PMIX_NAMESPACE => "prterun-$$");
    for my $order (@ranks) {
        ($codes, $said) = two(\%mpi, [map { {OMPI_COMM_WORLD_RANK => $_, OMPI_COMM_WORLD_LOCAL_RANK => $_} } @$order]);
        is $codes, '0 0', "mpirun's ranks @$order meet" or diag $said;
    }
    ($code, $err) = one({OMPI_COMM_WORLD_SIZE => 1, OMPI_COMM_WORLD_LOCAL_SIZE => 1, PMIX_NAMESPACE => "prterun-$$",
            OMPI_COMM_WORLD_RANK => 0, OMPI_COMM_WORLD_LOCAL_RANK => 0}, '-n', 2);
    is $code, 0, 'mpirun -n 1 etude train -n 2 starts two ranks' or diag $err;

    # ---- Slurm ----

    my %slurm = (SLURM_JOB_ID => $$, SLURM_JOB_NODELIST => 'lab-7', SLURM_NNODES => 1, SLURM_JOB_NUM_NODES => 1,
        SLURM_NODEID => 0);
    my %step = (%slurm, SLURM_STEP_ID => 0, SLURM_STEP_NUM_TASKS => 2, SLURM_NTASKS => 2, SLURM_STEP_TASKS_PER_NODE => '2');
    for my $order (@ranks) {
        ($codes, $said) = two(\%step, [map { {SLURM_PROCID => $_, SLURM_LOCALID => $_} } @$order]);
        is $codes, '0 0', "srun's tasks @$order meet" or diag $said;
    }
    my %first = (SLURM_PROCID => 0, SLURM_LOCALID => 0);
    ($code, $err) = one({%slurm, %first, SLURM_NTASKS => 1, SLURM_STEP_ID => 0, SLURM_STEP_NUM_TASKS => 1}, '-n', 2);
    is $code, 0, 'srun --ntasks-per-node=1 etude train -n 2 starts two ranks' or diag $err;
    ($code, $err) = one({%step, %first, SLURM_NNODES => 2, SLURM_JOB_NUM_NODES => 2, SLURM_STEP_TASKS_PER_NODE => '1(x2)'});
    is $code, 69, 'tasks on two machines are refused: 69' or diag $err;
    ok !glob("$dir/runtime/etude/ranks-*"), 'no word of a meeting is left behind';
}
my %batch = (SLURM_JOB_ID => 1, SLURM_JOB_NODELIST => 'lab-[7-8]', SLURM_NNODES => 1, SLURM_NODEID => 0, SLURM_PROCID => 0,
    SLURM_LOCALID => 0);
my ($code, $err) = one({%batch, SLURM_NTASKS => 1});
is $code, 0, 'sbatch -n1 etude train is a run like any other' or diag $err;
($code, $err) = one({%batch, SLURM_NTASKS => 2});
is $code, 64, 'of a batch script with two tasks it is not known who is the other: 64';
like $err, qr/2 tasks \(SLURM_NTASKS\) on one machine, and nproc 1 \(default\)/, 'which is said';
like $err, qr/hint: srun etude train/, 'with what helps';
($code, $err) = one({MASTER_ADDR => $own});
is $code, 0, "MASTER_ADDR may name this machine" or diag $err;
($code, $err) = one({MASTER_ADDR => '192.0.2.77'});
is $code, 69, 'but no other: 69';

# ---- the programs themselves ----

my @etude = ($etude, @train);
# They work here at all: "COMMAND true".
sub is_there { my @command = @_; return system("@command true >/dev/null 2>&1") == 0 }
sub runs_well { my ($what, @command) = @_; my $out = `@command @etude 2>&1 </dev/null`; is $? >> 8, 0, $what or diag $out; like $out, qr/finished after 20 batches/, '... once' }
@ENV{qw(OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM)} = (1, 1);
for my $real (
    ['torchrun --standalone --nproc-per-node 2', 'torchrun --standalone --nproc-per-node 2 --no-python'],
    ['mpirun -n 2', 'mpirun --oversubscribe -n 2'],
    ['srun -N1 -n2', 'srun -N1 -n2'],
    ['srun -n1', 'srun -n1'],
) {
    my ($name, @command) = @$real;
    SKIP: {
        skip "$name: not here", 2 unless $has_gloo && is_there(@command);
        runs_well($name, @command);
    }
}
done_testing();
