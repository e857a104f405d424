#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# lines.pl: which tests run which line of the sources. doc/testing, "Mutants".
#
#   lines.pl count TEST...         runs each test alone in a build that counts (gcov), and
#                                  keeps the lines that it ran
#   lines.pl of FILE:LINE...       the tests that ran one of these lines: seconds, and name;
#                                  the fastest first
#   lines.pl unrun [FOLDER|FILE...]   lines that no test ran, with their text
#
# ET_SRCDIR, ET_BUILDDIR: the sources, and a build of them whose configuration is taken.
# ET_BUILDDIR/mutants/counted is the build that counts; mutants/lines/TEST what a test ran:
# "SECONDS passed" or "SECONDS failed", then "FILE FROM-TO FROM-TO ...".
#
# What a process did that was killed by a signal is not counted.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Find qw(find);
use File::Path qw(make_path remove_tree);
use Time::HiRes qw(time);

my $LIMIT = 400;    # seconds of a test, which here is several times as slow

my $src = abs_path($ENV{ET_SRCDIR} // '.');
my $built = abs_path($ENV{ET_BUILDDIR} // 'build');
my ($counted, $lines) = ("$built/mutants/counted", "$built/mutants/lines");
my $log = "$built/mutants/counted.log";

sub slurp {
    my ($path) = @_;
    open my $f, '<', $path or die "$path: $!\n";
    local $/;
    return scalar <$f>;
}

sub run_logged {
    my ($command) = @_;
    return system("($command) >>'$log' 2>&1 </dev/null") == 0;
}

sub is_program { return $_[0] !~ /\.t$/ }

# ---- counting ----

sub build {
    my @programs = grep { is_program($_) } @_;
    my ($flags) = slurp("$built/config.log") =~ m{^  \$ \S*configure ?(.*)$}m;
    $flags =~ s/--(enable-werror|no-create|no-recursion)//g;
    my $count = "-O1 --coverage -fprofile-update=atomic -D_exit=etc_exit "
      . "-include $src/t/mutants/counted.h";
    make_path($counted);
    # configure's own programs would trip over counted.h.
    run_logged("cd '$counted' && { [ -f Makefile ] || '$src/configure' -q $flags; }")
      or die "the build that counts cannot be configured: $log\n";
    my $make = "make -s -C '$counted' -j2 CFLAGS='$count' CXXFLAGS='$count' LDFLAGS=--coverage";
    run_logged("$make all") && run_logged("$make test-needs @programs")
      or die "the build that counts does not build: $log\n";
}

# The names of files below FOLDER that end in EXT.
sub files {
    my ($folder, $ext) = @_;
    my @found;
    find(sub { push @found, $File::Find::name if /\Q$ext\E$/ }, $folder) if -d $folder;
    return @found;
}

# Adds what gcov says of FILES, .gcda or .gcno, to {FILE}{LINE}: was it run?
sub read_counts {
    my ($ran, @files) = @_;
    my $at;
    while (my @some = splice @files, 0, 100) {
        open my $gcov, '-|', 'sh', '-c', 'cd "$0" && gcov -t "$@" 2>/dev/null', $counted, @some
          or die "cannot run gcov: $!\n";
        while (<$gcov>) {
            if (/^ *-: *0:Source:(.*)/) {
                my $path = $1;
                $at = $path =~ m{^\Q$src\E/(src/.*)} ? $ran->{$1} //= {} : undef;
            } elsif ($at && /^ *([0-9]+|#+|=+)\*?: *([0-9]+):/) {
                $at->{$2} ||= $1 =~ /^[1-9]/ ? 1 : 0;
            }
        }
        close $gcov;
    }
}

# The numbers, in order, as "FROM-TO FROM-TO".
sub ranges {
    my @all;
    for my $n (sort { $a <=> $b } @_) {
        if (@all && $all[-1][1] == $n - 1) { $all[-1][1] = $n }
        else { push @all, [$n, $n] }
    }
    return join ' ', map { "$_->[0]-$_->[1]" } @all;
}

sub keep {
    my ($name, $first, $ran, $zero_too) = @_;
    my $path = "$lines/" . $name =~ s{/}{+}gr;
    open my $f, '>', $path or die "$path: $!\n";
    print $f "$first\n";
    for my $file (sort keys %$ran) {
        my @n = grep { $zero_too || $ran->{$file}{$_} } keys %{ $ran->{$file} };
        print $f "$file ", ranges(@n), "\n" if @n;
    }
    close $f or die "$path: $!\n";
}

sub count {
    my ($test) = @_;
    my $folder = "$built/mutants/counts";
    remove_tree($folder);
    my $command = is_program($test) ? "$counted/$test" : "$src/$test";
    my $strip = () = $counted =~ m{/}g;
    my $begin = time;
    my $passed = run_logged("cd '$counted' && ET_SRCDIR='$src' ET_BUILDDIR='$counted' "
          . "OMP_NUM_THREADS=1 ETUDE_CACHE_DIR='$counted/t/cache' "
          . "GCOV_PREFIX='$folder' GCOV_PREFIX_STRIP=$strip "
          . "prove -Q --exec 'timeout -k 5 $LIMIT' $command | grep -x 'Result: PASS'");
    my $seconds = sprintf '%.1f', time - $begin;
    my @data = files($folder, '.gcda');
    symlink $_ =~ s{^\Q$folder\E}{$counted}r =~ s/gcda$/gcno/r, $_ =~ s/gcda$/gcno/r for @data;
    my %ran;
    read_counts(\%ran, @data);
    keep($test, "$seconds " . ($passed ? 'passed' : 'failed'), \%ran);
    remove_tree($folder);
    printf "%-40s %6.1f s, %s; counts read in %.1f s\n", $test, $seconds,
      $passed ? 'passed' : 'FAILED', time - $begin - $seconds;
}

# ---- asking ----

# The lines that TEST ran, {FILE} = [[FROM, TO]...], and its first line.
sub read_kept {
    my ($path) = @_;
    my ($first, @rows) = split /\n/, slurp($path);
    my %ran;
    for (@rows) {
        my ($file, @ranges) = split / /;
        $ran{$file} = [ map { [ split /-/ ] } @ranges ];
    }
    return ($first, \%ran);
}

sub tests { return grep { !m{/all$} } glob "$lines/*" }

sub tests_of {
    my %at = map { /^(.*):([0-9]+)$/ ? ("$1:$2" => [$1, $2]) : die "no FILE:LINE: $_\n" } @_;
    my @found;
    for my $path (tests()) {
        my ($first, $ran) = read_kept($path);
        my ($seconds, $how) = split / /, $first;
        next if !grep { my ($file, $n) = @$_;
            grep { $_->[0] <= $n && $n <= $_->[1] } @{ $ran->{$file} // [] } } values %at;
        my $name = $path =~ s{.*/}{}r =~ s{\+}{/}gr;
        push @found, [$seconds, $name . ($how eq 'passed' ? '' : ' (failed)')];
    }
    printf "%6.1f %s\n", @$_ for sort { $a->[0] <=> $b->[0] } @found;
}

sub unrun {
    my @wanted = @_ ? @_ : ('src');
    my ($first, $all) = read_kept("$lines/all");
    my %left;
    for my $file (grep { my $f = $_; grep { index("$f/", "$_/") == 0 } @wanted } keys %$all) {
        $left{$file}{$_} = 1 for map { $_->[0] .. $_->[1] } @{ $all->{$file} };
    }
    my %count = map { $_ => scalar keys %{ $left{$_} } } keys %left;
    for my $path (tests()) {
        my (undef, $ran) = read_kept($path);
        for my $file (grep { $left{$_} } keys %$ran) {
            delete @{ $left{$file} }{ $_->[0] .. $_->[1] } for @{ $ran->{$file} };
        }
    }
    my ($n, $of) = (0, 0);
    for my $file (sort keys %left) {
        $of += $count{$file};
        $n += my @lines = sort { $a <=> $b } keys %{ $left{$file} };
        next if !@lines;
        my @text = split /\n/, slurp("$src/$file");
        print "$file:$_:$text[$_ - 1]\n" for @lines;
    }
    print "$n of $of lines are run by no test\n";
}

my ($what, @arguments) = @ARGV;
$what //= '';
$| = 1;
if ($what eq 'count') {
    make_path($lines);
    build(@arguments);
    my %all;
    read_counts(\%all, files($counted, '.gcno'));
    keep('all', '0 passed', \%all, 1);
    count($_) for @arguments;
} elsif ($what eq 'of') {
    tests_of(@arguments);
} elsif ($what eq 'unrun') {
    unrun(@arguments);
} else {
    die "lines.pl count TEST... | of FILE:LINE... | unrun [FOLDER|FILE...]\n";
}
