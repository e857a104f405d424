#!/usr/bin/env perl
# SPDX-License-Identifier: Apache-2.0
# One file, one row: what is defined is registered, what is registered is defined, and
# nothing else in the program knows an algorithm by name.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;
use Test::More;

# table, its macro, the symbol that a row stands for, and whether each row has a file of
# its name beside the table.
my @tables = (
    ['include/etude/ops.def', 'ET_OP', 'et_op_%s', 0],
    ['include/etude/modules.def', 'ET_MODULE', 'et_%s_class', 0],
    ['src/core/models/models.def', 'ET_MODEL', 'et_%s_model', 0],
    ['src/core/data/datasets.def', 'ET_DATASET', 'et_dataset_%s', 0],
    ['src/core/data/transforms.def', 'ET_TRANSFORM', 'et_transform_%s', 1],
    ['src/core/optim/optimizers.def', 'ET_OPTIMIZER', 'et_optimizer_%s', 1],
    ['src/core/sched/schedulers.def', 'ET_SCHEDULER', 'et_scheduler_%s', 1],
    ['src/core/metrics/metrics.def', 'ET_METRIC', 'et_metric_%s', 1],
    ['src/core/algorithms/algorithms.def', 'ET_ALGORITHM', 'et_algorithm_%s', 1],
    ['src/core/callbacks/callbacks.def', 'ET_CALLBACK', 'et_callback_%s', 1],
    ['src/core/loggers/loggers.def', 'ET_LOGGER', 'et_logger_%s', 1],
);

# Objects are constants: what nm calls R, or D where they hold addresses.
my %object;
if (-f "$build/libetude-core.a") {
    my ($defined) = defined_symbols("$build/libetude-core.a");
    %object = map { $_ => 1 } grep { $defined->{$_} =~ /[RDG]/ } keys %$defined;
}

my %rows;
for my $table (@tables) {
    my ($def, $macro, $symbol, $has_file) = @$table;
    next unless -f "$root/$def";
    my ($folder) = $def =~ m{(.*)/};
    my @names = code($def) =~ /^\s*\Q$macro\E(?:_UNARY|_BINARY)?\((\w+)/mg;
    my %name = map { $_ => 1 } @names;
    $rows{$macro} = \@names;
    cmp_ok(scalar @names, '==', scalar keys %name, "$def lists each name once");
    SKIP: {
        skip 'nothing is built', 2 unless %object;
        my $pattern = quotemeta $symbol;
        $pattern =~ s/\\%s/(\\w+)/;
        none("every row of $def is defined",
             grep { !$object{sprintf $symbol, $_} } @names);
        none("everything that looks like a row of $def has one",
             grep { /^$pattern$/ && !$name{$1} && !/_(names|classes)$/ } sort keys %object);
    }
    none("every row of $def has a file of its name",
         grep { !-f "$root/$folder/$_.c" } @names) if $has_file;
}

my $features = slurp('doc/features');
for my $macro (qw(ET_OPTIMIZER ET_SCHEDULER ET_CALLBACK ET_LOGGER)) {
    none("doc/features names every row of $macro", grep { $features !~ /\b$_\b/ } @{$rows{$macro}});
}

my @known;
for my $path (grep { !m{^src/core/algorithms/} } files(qr/\.(c|h|def)$/, 'src')) {
    my $text = code($path, 1);
    for my $name (@{$rows{ET_ALGORITHM} // []}) {
        next if $name eq 'alibi' && $path =~ /gpt2/; # a word of its option `position`
        push @known, "$path knows $name"
            if $text =~ /\bet_algorithm_$name\b/ || $text =~ /"\Q$name\E"/;
    }
}
none("an algorithm's name is written in its folder only", @known);

# Names with a prefix are everybody's: one name, one thing. What a device completes for
# itself (et_device_handle) is another in each module.
my (%tag, %constant);
for my $path (files(qr/\.(c|h|cc)$/, 'src', 'include')) {
    my $text = code($path);
    $tag{$1}{$path} = 1 while $text =~ /\b(?:struct|union|enum) ((?:eti|etd|tui|cli)_\w+)\s*\{/g;
    my $name = qr/(?:ET|ETI|ETD|TUI|CLI)_[A-Z0-9_]+/;
    $constant{$1}{$path} = 1 while $text =~ /^[ \t]*#[ \t]*define[ \t]+($name)[ \t]/mg;
    for my $body ($text =~ /\benum(?:\s+\w+)?\s*\{([^{}]*)\}/g) {
        $constant{$1}{$path} = 1 while $body =~ /(?:^|,)\s*($name)\s*(?==|,|$)/g;
    }
}
for (['struct, union or enum', \%tag], ['constant', \%constant]) {
    my ($what, $where) = @$_;
    none("no $what of a name is in two files",
         map { "$_: " . join ' ', sort keys %{$where->{$_}} }
         grep { keys %{$where->{$_}} > 1 } sort keys %$where);
}

my $lists = join ' ', map { slurp($_) } files(qr/sources\.am$/, 'src', 'include', 't', 'bench',
                                              'examples');
none('every source is in a sources.am',
     grep { my $program = s/\.c$//r; $lists !~ m{(^|\s)(\Q$_\E|\Q$program\E)(\s|$)} }
         files(qr/\.(c|h|def)$/, 'src', 'include'), files(qr/\.c$/, 't', 'bench', 'examples'));
none('every script that is a test is in a sources.am',
     grep { $lists !~ m{(^|\s)\Q$_\E(\s|$)} } files(qr/\.t$/, 't'));
done_testing();
