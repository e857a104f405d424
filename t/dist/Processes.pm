# SPDX-License-Identifier: Apache-2.0
# Processes.pm: what tests of a run's processes share: a folder of their own, a recipe that
# trains until it is stopped, runs in it, and who they are. None of them outlives the test.
package Processes;
use strict;
use warnings;
use Cwd qw(abs_path);
use Exporter qw(import);
use File::Temp qw(tempdir);
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(sleep clock_gettime CLOCK_MONOTONIC);

our $build = abs_path($ENV{ET_BUILDDIR} || '.');
our $etude = "$build/etude";
our $faults = "$build/t/torture/faults";    # etude that breaks where it is told to
our $dir = tempdir('etude-dist.XXXXXX', short_folder(), CLEANUP => 1);
our $has_gloo = `ldd $etude $build/.libs/etude 2>/dev/null` =~ /libgloo/;
# What a dump says in front of the frame of the program; a sanitizer's backtrace is another.
our $stands = qr/this rank does not go on; it is at\n(?:.*lib[at]san.*\n)?.*/;
our @EXPORT = qw($build $etude $faults $dir $has_gloo $stands slurp field children alive last_batch
    until_true write_recipe start start_with finish supervisor ranks hub command halt has_pending
    batch_of);

# A socket's path has at most 107 bytes, whatever TMPDIR is.
sub short_folder { return length($ENV{TMPDIR} // '') > 40 ? (DIR => '/tmp') : (TMPDIR => 1) }

chdir $dir or die;
@ENV{qw(OMP_NUM_THREADS ETUDE_CONFIG_DIR XDG_STATE_HOME XDG_RUNTIME_DIR)} =
    (1, "$dir/no-config", "$dir/state", "$dir/runtime");
mkdir "$dir/runtime", 0700;
$ENV{ETUDE_DEVICE} = 'ref' unless -e "$build/libetude-cpu.la";
delete @ENV{qw(WORLD_SIZE LOCAL_WORLD_SIZE RANK LOCAL_RANK BASE_RANK NODE_RANK MASTER_ADDR MASTER_PORT
    ETUDE_FAILPOINTS)};
# (The tests may be a job themselves.)
delete @ENV{grep { /^(SLURM_(?!CONF)|OMPI_|PMIX_|TORCHELASTIC_)/ } keys %ENV};
# These signals are what is tested: AddressSanitizer would report them and exit instead.
$ENV{ASAN_OPTIONS} = join ':', $ENV{ASAN_OPTIONS} // (),
    map { "handle_$_=0" } qw(segv sigbus abort sigill sigfpe);

# $name, with further lines of YAML.
sub write_recipe {
    my ($name, $more) = @_;
    open my $recipe, '>', $name or die;
    print $recipe <<'R', $more // '';
max_duration: 100000000ba
seed: 3
model: {name: mlp, hidden: 16, layers: 1}
train_data: {name: synthetic_images, batch_size: 8, num_samples: 32, workers: 0}
optimizer: {name: sgd, lr: 0.001}
checkpoint: {interval: 50ba, keep: 2}
R
    close $recipe;
}
write_recipe('r.yaml');

sub slurp { my ($path) = @_; open my $f, '<', $path or return ''; local $/; return <$f> // '' }
sub field { my ($run, $key) = @_; return slurp("$run/run.json") =~ /"$key": "?([^",\n]*)/ ? $1 : '' }
sub children { my ($pid) = @_; return split ' ', `ps -o pid= --ppid $pid` }
sub alive { my ($pid) = @_; return kill(0, $pid) && slurp("/proc/$pid/stat") !~ /\) Z / }
sub last_batch { my ($run) = @_; my @l = slurp("$run/metrics.jsonl") =~ /"ba":(\d+)/g; return $l[-1] // 0 }

# Waits until CODE is true, for as long as no machine takes; its value.
sub until_true {
    my ($code) = @_;
    my $end = clock_gettime(CLOCK_MONOTONIC) + 120;
    while (clock_gettime(CLOCK_MONOTONIC) < $end) { my $v = $code->(); return $v if $v; sleep 0.02 }
    return $code->();
}

# Begins PROGRAM in $run with failpoints; the process that shows it.
sub start_with {
    my ($program, $points, $run, @more) = @_;
    my $pid = fork // die;
    if (!$pid) {
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', "$run.out";
        open STDERR, '>', "$run.err";
        $ENV{ETUDE_FAILPOINTS} = $points if $points;
        { exec $program, 'train', 'r.yaml', '--run_directory', $run, '--run_name', $run,
            '--progress', 'none', @more }
        POSIX::_exit(127); # else the child is a second test
    }
    return $pid;
}

# Begins a run in $run; the process that shows it, once it trains.
sub start {
    my ($run, @more) = @_;
    my $pid = start_with($etude, '', $run, @more);
    until_true(sub { -s "$run/metrics.jsonl" && field($run, 'state') eq 'running' });
    return $pid;
}
# How it ended; one that never does is killed.
sub finish {
    my ($pid) = @_;
    until_true(sub { waitpid($pid, WNOHANG) == $pid }) or kill 'KILL', $pid and waitpid $pid, 0;
    return $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
}
sub supervisor { my ($run) = @_; return field($run, 'pid') }
# The children of a supervisor: ranks carry its command line, the hub its own. (Until it
# is the hub a new process looks as a rank does, but for the threads that all ranks have.)
sub ranks {
    my ($run) = @_;
    return grep { slurp("/proc/$_/status") =~ /^Threads:\s*(\d+)/m && $1 > 1 && slurp("/proc/$_/cmdline") !~ /__hub/ }
        children(supervisor($run));
}
sub hub { my ($run) = @_; return (grep { slurp("/proc/$_/cmdline") =~ /__hub/ } children(supervisor($run)))[0] }
# Stops a process, and comes back once all its threads stand still: one that goes on might
# take the signal that is sent next.
sub halt {
    my ($pid) = @_;
    kill 'STOP', $pid;
    return until_true(sub { !grep { slurp($_) !~ /\) T / } glob "/proc/$pid/task/*/stat" });
}
# Has signal NUMBER been sent to a process that does not take it, as one that is stopped?
sub has_pending {
    my ($pid, $number) = @_;
    return slurp("/proc/$pid/status") =~ /^ShdPnd:\s*([0-9a-f]+)/m && hex($1) >> $number - 1 & 1;
}
# The batch after which a run does what it is asked for; -1: it does not.
sub batch_of { my ($code, $said) = command(@_); return !$code && $said =~ /after batch (\d+)/ ? $1 : -1 }
sub command { my $out = `$etude @_ 2>&1`; return ($? >> 8, $out) }

# Runs are processes of their own: what a failed test leaves would train for ever.
my $self = $$;
END {
    local $?;
    for my $run ($$ == $self ? map { m{([^/]+)/run\.json$} } glob "$dir/*/run.json" : ()) {
        my $pid = supervisor($run);
        kill 'KILL', $pid if $pid && slurp("/proc/$pid/cmdline") =~ /$run/;
    }
}
1;
