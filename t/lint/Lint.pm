# SPDX-License-Identifier: Apache-2.0
# Lint.pm: what the lint tests share: the tree's files, and C without its comments.
package Lint;
use strict;
use warnings;
use Exporter 'import';
use File::Find;
use File::Basename;
use Cwd 'abs_path';

our @EXPORT = qw($root $build files slurp code defined_symbols none);

our $root = $ENV{ET_SRCDIR} // abs_path(dirname(__FILE__) . "/../..");
our $build = $ENV{ET_BUILDDIR} // "$root/build";

# Paths below the root whose names match PATTERN, of the folders given, sorted.
sub files {
    my ($pattern, @folders) = @_;
    my @found;
    for my $folder (grep { -d "$root/$_" } @folders) {
        find({no_chdir => 1, wanted => sub {
            push @found, substr($_, length($root) + 1) if -f $_ && $_ =~ $pattern;
        }}, "$root/$folder");
    }
    return sort grep { !m{/\.(deps|libs)/} } @found;
}

sub slurp {
    my ($path) = @_;
    open my $f, '<', "$root/$path" or die "$path: $!";
    local $/;
    return scalar <$f> // '';
}

# C source with comments blanked, and with the insides of strings too unless KEEP; lines
# keep their numbers.
sub code {
    my ($path, $keep) = @_;
    my $text = slurp($path);
    $text =~ s{(/\*.*?\*/|//[^\n]*)|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')}{
        my ($comment, $string) = ($1, $2);
        if (defined $comment) { $comment =~ s/[^\n]/ /g; $comment }
        elsif ($keep || $string =~ /^'/) { $string }
        else { '"' . ' ' x (length($string) - 2) . '"' }
    }gse;
    return $text;
}

# The global symbols that the objects of ARCHIVE define, and those they leave undefined.
sub defined_symbols {
    my ($archive) = @_;
    my (%defined, %undefined);
    open my $nm, '-|', 'nm', '-g', $archive or die "nm: $!";
    while (<$nm>) {
        $undefined{$1} = 1 if /^\s+U (\w+)/;
        $defined{$2} = $1 if /^[0-9a-f]+ ([A-TV-Z]) (\w+)/;
    }
    close $nm or die "nm $archive failed";
    return (\%defined, \%undefined);
}

# One TAP line: passes when nothing is in the list, else shows it.
sub none {
    my ($what, @bad) = @_;
    Test::More::ok(!@bad, $what);
    Test::More::diag("  $_") for @bad[0 .. (@bad > 40 ? 39 : $#bad)];
}

1;
