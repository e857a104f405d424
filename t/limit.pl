#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# limit.pl PROGRAM: runs one test, and ends it when it says nothing more: a hang is a
# failure with a name. Its exit is the test's.
#
# A test that prints no line for LIMIT seconds gets another one, "not ok - TEST: no end",
# where its processes stand, and exit 124; they are killed, also those that left its group
# or have lost their parent: all have the test's mark in their environment. Waits of tests
# have ends of their own, of two minutes at most, which say what did not come; so the limit
# is a little longer than that.
#
# ETUDE_TEST_LIMIT: other seconds (of a build with sanitizers: Makefile.am). Long forms
# (ETUDE_LONG) may work for an hour between two lines.
use strict;
use warnings;
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $limit = $ENV{ETUDE_LONG} ? 3600 : $ENV{ETUDE_TEST_LIMIT} || 150;
my $last = '';    # line that it has printed
my $mark = "<$$ " . clock_gettime(CLOCK_MONOTONIC) . '>';
local $| = 1;

sub slurp { my ($path) = @_; open my $f, '<', $path or return ''; local $/; return <$f> // '' }

# The processes of the test that are there.
sub processes { return grep { slurp("/proc/$_/environ") =~ /(^|\0)ET_TEST=[^\0]*\Q$mark\E/ } map { m{(\d+)} } glob '/proc/[0-9]*' }

sub stop_all {
    my ($group) = @_;
    kill 'KILL', -$group;
    for (1 .. 50) { # until none has begun another one meanwhile
        my @left = processes() or return;
        kill 'KILL', @left;
        select undef, undef, undef, 0.02;
    }
}

# A line for each thread: what it does, and where in the system it waits.
sub say_where {
    for my $pid (processes()) {
        my $command = slurp("/proc/$pid/cmdline") =~ tr/\0\n/  /r;
        next if !$command;    # it has ended, and nobody has asked how
        print "#   process $pid: $command\n";
        for my $task (glob "/proc/$pid/task/*") {
            my ($name, $state) = slurp("$task/stat") =~ /\((.*)\) (\S)/ or next;
            printf "#     thread %s, %s: %s in %s\n", $task =~ /(\d+)$/, $name, $state, slurp("$task/wchan") || '?';
        }
    }
}

pipe my $from, my $to or die "no pipe: $!\n";
my $test = fork // die "no process: $!\n";
if (!$test) {
    setpgrp;
    open STDIN, '<', '/dev/null';
    open STDOUT, '>&', $to;
    $ENV{ET_TEST} .= $mark;    # of a test that runs tests: all of them
    { no warnings 'exec'; exec { $ARGV[0] } @ARGV }
    print STDERR "cannot run $ARGV[0]: $!\n";
    POSIX::_exit(127);
}
close $to;
for my $name (qw(INT TERM HUP)) {
    $SIG{$name} = sub { stop_all($test); $SIG{$name} = 'DEFAULT'; kill $name, $$ };
}

# Whom the test leaves behind may hold the pipe: its own end counts.
my ($spoken, $status, $open) = (clock_gettime(CLOCK_MONOTONIC), undef, 1);
while (1) {
    $status = $? if !defined $status && waitpid($test, WNOHANG) == $test;
    my $set = '';
    vec($set, fileno $from, 1) = 1 if $open;
    if (select($set, undef, undef, defined $status ? 0 : $open ? 0.1 : 0.01) > 0) {
        $open = sysread $from, my $text, 65536 or next;
        print $text;
        ($last, $spoken) = ($1, clock_gettime(CLOCK_MONOTONIC)) if $text =~ /([^\n]+)\n[^\n]*\z/;
    } elsif (defined $status) {
        last;
    } elsif (clock_gettime(CLOCK_MONOTONIC) - $spoken > $limit) {
        print "\nnot ok - TEST: no end after $limit s without a line", $last ? "; the last was: $last" : '', "\n";
        say_where();
        stop_all($test);
        exit 124;
    }
}
exit($status & 127 ? 128 + ($status & 127) : $status >> 8);
