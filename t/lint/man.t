#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# The manual pages say what the program does: every command, option, component, variable
# and exit status is in one, and mandoc finds nothing to remark in any.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;
use Test::More;

my $folder = "$build/man/out";
plan skip_all => 'the manual pages are not built' unless -d $folder;
my %page = map { m{([^/]+)$} ? ($1 => read_page($_)) : () } glob "$folder/*";

sub read_page {
    my ($path) = @_;
    open my $f, '<', $path or die "$path: $!";
    local $/;
    return <$f>;
}

# What an argument of a macro looks like when it is read.
sub plain {
    my ($text) = @_;
    $text =~ s/\\&//g;
    $text =~ s/\\-/-/g;
    return $text;
}

my @said;
SKIP: {
    skip 'there is no mandoc', 1 if system('command -v mandoc >/dev/null 2>&1') != 0;
    for my $name (sort keys %page) {
        for (`mandoc -T lint -W style '$folder/$name'`) {
            chomp;
            # The pages are not where man looks; among themselves they are.
            # Ours lie elsewhere, those of others may not be installed.
            next if /referenced manual not found: Xr (\S+) (\d)/
                && ($page{"$1.$2"} || $1 !~ /^etude/);
            push @said, $_;
        }
    }
    none('mandoc has nothing to say about any page', @said);
}

my @prose = map { m{([^/]+)\.mdoc$} } glob "$root/man/prose/*";
cmp_ok(scalar @prose, '>', 0, 'there are words that no table has');
none('they are all in a page', grep { !$page{$_} } @prose);

sub etude {
    open my $f, '-|', "$build/etude", @_ or die "etude: $!";
    my @lines = <$f>;
    close $f;
    return @lines;
}

my (@commands, @missing);
for (etude('help')) {
    push @commands, $1 if /^  ([a-z]+) / && !/not in this version/;
}
cmp_ok(scalar @commands, '>', 10, 'help lists commands');
none('each has a page', grep { !$page{"etude-$_.1"} } @commands);
none('and etude(1) refers to it', grep { $page{'etude.1'} !~ /^\.It Xr etude-$_ 1$/m } @commands);
for my $command (@commands) {
    my $text = plain($page{"etude-$command.1"} . $page{'etude.1'});
    for (etude('help', $command)) {
        next if /not in this version/ || !/^\s+(?:-\w, )?--([\w-]+)/;
        push @missing, "$command --$1" if $text !~ /^\.It .*Fl -\Q$1\E/m;
    }
}
none('every option is in one', @missing);

@missing = ();
my $all = plain($page{'etude-algorithms.7'});
my $name = '';
for (etude('algorithms')) {
    $name = $1 if /^(\w+) /;
    last if /that later versions bring$/;
    push @missing, $name if $all !~ /^\.It Cm \Q$name\E$/m;
    while (/ (\w+)=/g) {
        push @missing, "$name: $1" if $all !~ /\b\Q$1\E\b/;
    }
}
none('every algorithm and its options are in etude-algorithms(7)', @missing);

my %variable;
for my $path (files(qr/\.[ch]$/, 'src')) {
    my $text = code($path, 1);
    $variable{$1} = $path while $text =~ /\bgetenv\("(\w+)"\)/g;
}
cmp_ok(scalar keys %variable, '>', 10, 'the program reads variables');
none('every one is in a page',
     grep { my $v = $_; !grep { plain($_) =~ /\b$v\b/ } values %page } sort keys %variable);

my ($exits) = slurp('src/cli/cli.h') =~ /^enum cli_exit \{(.*?)^\};/ms;
my ($section) = $page{'etude.1'} =~ /^\.Sh EXIT STATUS\n(.*?)^\.Sh/ms;
none('every exit status is in etude(1)',
     grep { $_ != 128 && $section !~ /^\.It (.*\b)?$_\b/m } $exits =~ /= (\d+)/g);
# etude-events(7) has every operation and every number that a command is rejected with.
{
    my ($operations) = $page{'etude-events.7'} =~ /^\.Sh OPERATIONS$(.*?)^\.Sh REJECTIONS$/ms;
    my ($rejections) = $page{'etude-events.7'} =~ /^\.Sh REJECTIONS$(.*?)^\.Sh /ms;
    my %number = slurp('src/dist/wire/errors.h') =~ /X\((\d+), (\w+),/g;
    my %code = reverse %number;
    my ($map) = slurp('src/dist/wire/wire.h') =~ /#define ETD_OP_MAP\(X\)(.*?)\n\n/s;
    my @ops = $map =~ /X\(\w+, "(\w+)"/g;
    cmp_ok(scalar @ops, '>', 8, 'there are operations');
    none('each operation is in etude-events(7)', grep { $operations !~ /^\.It Cm $_$/m } @ops);
    my %used;
    for my $path (qw(src/dist/hub/control.c src/dist/run/supervisor_control.c
                     src/dist/worker/session.c)) {
        # (START is not a command of a run: session_host.c.)
        my $text = slurp($path);
        $used{$1} = 1 while $text =~ /\b(?:reject|etd_session_answer)\([^;]*?ETD_E_(\w+)/g;
        $used{$1} = 1 while $text =~ /\*code = ETD_E_(\w+)/g;
        $used{$1} = 1 while $text =~ /\? ETD_E_(\w+)/g;
        $used{$1} = 1 while $text =~ /: ETD_E_(\w+)/g;
    }
    cmp_ok(scalar keys %used, '>', 6, 'commands are rejected for several reasons');
    none('each number that rejects a command is in etude-events(7)',
         grep { $rejections !~ /^\.It $code{$_}$/m } sort keys %used);
}

done_testing();
