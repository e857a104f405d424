#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# run.pl [AREA|MUTANT...]: puts defects into a copy of the sources, one at a time, and tells
# which of them the tests see. doc/testing, "Mutants", says how they are chosen.
#
# ET_SRCDIR, ET_BUILDDIR: the sources, and a build of them whose configuration is taken.
# The copy is ET_BUILDDIR/mutants; it stays, so that the next call builds little.
# t/mutants/AREA.txt holds the mutants of an area:
#
#   mutant NAME
#   what: the defect, in a sentence
#   tests: t/unit/graph t/cli/resume.t
#   file: src/core/graph/lower.c
#   -    the line as it is, found once in the file (several: they follow each other)
#   +    the line with the defect
#
# With "tests: all" they are those that run one of the lines that change, the fastest first,
# until one fails or they have taken MINUTES: lines.pl knows them.
# A mutant is seen if one of its tests fails that passes without it, or takes longer than
# LIMIT. Exit 1 if one is not seen, or is no mutant any more.
use strict;
use warnings;
use File::Basename qw(dirname);
use File::Path qw(make_path);

my $LIMIT = 120;    # seconds of a test: one that goes on is a hang, and fails
my $MINUTES = 5;    # of tests, where a mutant names none

my ($src, $built) = ($ENV{ET_SRCDIR} // '.', $ENV{ET_BUILDDIR} // 'build');
my $tree = "$built/mutants/tree";
my $log = "$built/mutants/log";

sub slurp {
    my ($path) = @_;
    open my $f, '<', $path or die "$path: $!\n";
    local $/;
    return scalar <$f>;
}

sub spew {
    my ($path, $text) = @_;
    open my $f, '>', $path or die "$path: $!\n";
    print $f $text;
    close $f or die "$path: $!\n";
}

# The mutants of one file, in its order.
sub read_area {
    my ($path) = @_;
    my ($area) = $path =~ m{([^/]+)\.txt$};
    my (@all, $m);
    for my $line (split /\n/, slurp($path)) {
        next if $line =~ /^(#.*)?$/;
        if ($line =~ /^mutant (\S+)$/) {
            push @all, $m = { area => $area, name => "$area/$1", old => '', new => '' };
        } elsif ($m && $line =~ /^(what|tests|file): (.+)$/) {
            $m->{$1} = $2;
        } elsif ($m && $line =~ /^([-+])(.*)$/) {
            $m->{ $1 eq '-' ? 'old' : 'new' } .= "$2\n";
        } else {
            die "$path: cannot read '$line'\n";
        }
    }
    for my $one (@all) {
        defined $one->{$_} or die "$one->{name} has no '$_:'\n" for qw(what tests file);
    }
    return @all;
}

# The copy as the sources are now. Files that are the same keep their times, for make.
sub copy_sources {
    make_path($tree);
    my @files = split /\0/, `cd '$src' && git ls-files -z --cached --others --exclude-standard`;
    for my $file (@files) {
        my ($from, $to) = ("$src/$file", "$tree/$file");
        next if !-f $from || (-f $to && slurp($from) eq slurp($to));
        make_path(dirname($to));
        system('cp', '-p', $from, $to) == 0 or die "cannot copy $file\n";
        utime undef, undef, $to;
    }
}

sub run_logged {
    my ($command) = @_;
    return system("($command) >>'$log' 2>&1 </dev/null") == 0;
}

sub configure {
    my ($flags) = slurp("$built/config.log") =~ m{^  \$ \S*configure ?(.*)$}m;
    # What a defect leaves unused is no reason not to try it; the others are config.status's.
    $flags =~ s/--(enable-werror|no-create|no-recursion)|-Werror\b(=[\w-]+)?//g;
    run_logged("cd '$tree' && { [ -x configure ] || autoreconf -i; } && mkdir -p build && "
          . "cd build && { [ -f Makefile ] || ../configure -q $flags; }")
      or die "the copy cannot be configured: $log\n";
}

sub is_program { return $_[0] !~ /\.t$/ }

# Builds the program and TESTS, with what they need besides; false where the sources do not
# compile. ("all" is a make of its own: what is made beside it would be made twice at once.)
sub build {
    my $make = "make -s -C '$tree/build' -j2";
    my $programs = join ' ', grep { is_program($_) } @_;
    return run_logged("$make all") && run_logged("$make test-needs $programs");
}

# Does the test pass? One that is skipped sees nothing.
sub passes {
    my ($test) = @_;
    my $command = is_program($test) ? "build/$test" : "$test";
    chomp(my $root = `cd '$tree' && pwd`);
    return run_logged("cd '$tree' && ET_SRCDIR='$root' ET_BUILDDIR='$root/build' "
          . "OMP_NUM_THREADS=1 ETUDE_CACHE_DIR='$root/build/t/cache' "
          . "prove -Q --exec 'timeout -k 5 $LIMIT' $command | grep -x 'Result: PASS'");
}

# Puts the defect into the copy; returns the text as it was, or nothing where the lines are
# not there, or not once.
sub apply {
    my ($m) = @_;
    my $path = "$tree/$m->{file}";
    return if !-f $path;
    my $text = slurp($path);
    my $at = index $text, $m->{old};
    return if $at < 0 || $m->{old} eq '' || index($text, $m->{old}, $at + 1) >= 0;
    my $line = 1 + substr($text, 0, $at) =~ tr/\n//;
    $m->{lines} = [ $line .. $line - 1 + $m->{old} =~ tr/\n// ];
    spew($path, substr($text, 0, $at) . $m->{new} . substr($text, $at + length $m->{old}));
    return $text;
}

# The tests that run what changes, of those that passed when they were counted.
sub tests_of {
    my ($m) = @_;
    my @lines = map { "'$m->{file}:$_'" } @{ $m->{lines} };
    my $answer = `ET_SRCDIR='$src' ET_BUILDDIR='$built' perl '$src/t/mutants/lines.pl' of @lines`;
    return map { /^ *\S+ (\S+)$/ } split /\n/, $answer;
}

# (Of "all", a test that fails is run once more: there may be other reasons.)
sub look {
    my ($m, @tests) = @_;
    my $all = $m->{tests} eq 'all';
    return $all ? 'NO TEST RUNS IT' : 'NO TEST PASSES WITHOUT IT' if !@tests;
    return 'DOES NOT BUILD' if !build($all ? () : @tests);
    my ($spent, $done) = (0, 0);
    for my $test (@tests) {
        last if $all && $spent > 60 * $MINUTES;
        run_logged("make -s -C '$tree/build' $test") if $all && is_program($test);
        my $begin = time;
        return "seen by $test" if !passes($test) && !($all && passes($test));
        $spent += time - $begin;
        $done++;
    }
    return 'NOT SEEN' . ($done < @tests ? " by the first $done of " . @tests : '');
}

# "seen by TEST", "NOT SEEN", or why it is no mutant.
sub try {
    my ($m, $broken) = @_;
    my $text = apply($m);
    return 'ITS LINES ARE NOT THERE' if !defined $text;
    my @tests =
      $m->{tests} eq 'all' ? tests_of($m) : grep { !$broken->{$_} } split ' ', $m->{tests};
    my $result = look($m, @tests);
    spew("$tree/$m->{file}", $text);
    return $result;
}

my @all = map { read_area($_) } sort glob "$src/t/mutants/*.txt";
if (@ARGV) {
    my %asked = map { $_ => 1 } @ARGV;
    @all = grep { $asked{ $_->{area} } || $asked{ $_->{name} } } @all;
    @all or die "no mutant and no area is named @ARGV\n";
}
make_path("$built/mutants");
spew($log, '');
copy_sources();
configure();
my %tests = map { $_ => 1 } grep { $_ ne 'all' } map { split ' ', $_->{tests} } @all;
build(sort keys %tests) or die "the copy does not build: $log\n";
my %broken = map { $_ => 1 } grep { !passes($_) } sort keys %tests;
print "$_ fails without a mutant, and is left out\n" for sort keys %broken;
my ($lost, %seen, %of) = (0);
$| = 1;
for my $m (@all) {
    my $result = try($m, \%broken);
    my $is_seen = $result =~ /^seen/;
    $of{ $m->{area} }++;
    $seen{ $m->{area} } += $is_seen;
    $lost += !$is_seen;
    printf "%-34s %s%s\n", $m->{name}, $result, $is_seen ? '' : ": $m->{what}";
}
print "\n";
printf "%-34s %3d of %3d seen\n", $_, $seen{$_}, $of{$_} for sort keys %of;
my $sum = @all - $lost;
printf "%-34s %3d of %3d seen, %.0f %%\n", 'all', $sum, scalar @all, 100 * $sum / @all;
exit($lost ? 1 : 0);
