#!/usr/bin/env perl
# Calls go down: kernels <- core <- dist <- tui <- cli. A layer includes only itself,
# those below it and the public headers; only the CPU device knows oneDNN.
use strict;
use warnings;
use FindBin;
use lib $FindBin::Bin;
use Lint;
use Test::More;

my @layers = qw(kernels core dist tui cli);
my %rank = map { $layers[$_] => $_ } 0 .. $#layers;

# Headers of libraries, and the folder that alone may include them.
my %only = (
    'dnnl' => 'src/kernels/cpu',
    'omp.h' => 'src/kernels/cpu',
    'cuda' => 'src/kernels/cuda',
    'cudnn' => 'src/kernels/cuda',
    'cublas' => 'src/kernels/cuda',
    'nccl.h' => 'src/dist',
    'gloo/' => 'src/dist',
    'zmq' => 'src/dist',
    # Without a supervisor the run itself writes its log of events (DESIGN.md section 6).
    'msgpack' => 'src/(dist|core/run)',
    'sqlite3' => 'src/core/run',
    'curses' => 'src/tui',
);

my (@up, @foreign, @device, @public);
for my $path (files(qr/\.(c|h|cc|cu|def)$/, 'src', 'include')) {
    my ($layer) = $path =~ m{^src/(\w+)/};
    my $line = 0;
    for (split /\n/, code($path, 1)) {
        $line++;
        next unless /^\s*#\s*include\s*[<"]([^>"]+)[>"]/;
        my $header = $1;
        my ($target) = $header =~ m{^(kernels|core|dist|tui|cli)/};
        push @up, "$path:$line: $header"
            if $layer && $target && $rank{$target} > $rank{$layer};
        push @device, "$path:$line: $header"
            if $header =~ m{^kernels/(cpu|cuda)/} && index($path, "src/kernels/$1/") != 0;
        push @public, "$path:$line: $header"
            if $path =~ /^include/ && $target;
        for my $library (sort keys %only) {
            push @foreign, "$path:$line: $header belongs to $only{$library}"
                if $header =~ m{(^|/)\Q$library\E} && $path !~ m{^$only{$library}/};
        }
    }
}
none('no file includes a header of a layer above its own', @up);
none('public headers include no private ones', @public);
none("a device's headers stay in its folder", @device);
none("a library's headers stay in the folder that adapts it", @foreign);

# What an archive may leave to others, by prefix (STYLE.md section 2).
my %forbidden = (
    'libetude-tui.a' => qr/^(cli_|main$)/,
    'libetude-dist.a' => qr/^(tui_|cli_|main$)/,
    'libetude-core.a' => qr/^(etd_|tui_|cli_|dnnl_|GOMP_|omp_|main$)/,
    'libetude-ref.a' => qr/^(eti_|etd_|tui_|cli_|dnnl_|GOMP_|omp_|main$)/,
);
for my $archive (sort keys %forbidden) {
    SKIP: {
        skip "$archive is not built", 1 unless -f "$build/$archive";
        my ($defined, $undefined) = defined_symbols("$build/$archive");
        none("$archive calls nothing above it",
             grep { !$defined->{$_} && $_ =~ $forbidden{$archive} } sort keys %$undefined);
    }
}

SKIP: {
    my $module = "$build/.libs/libetude-cpu.so";
    skip 'the CPU device is not built', 1 unless -f $module;
    my @exported = grep { !/^(_init|_fini|_edata|_end|__bss_start)$/ }
        map { / [TDRBVW] (\w+)/ ? $1 : () } `nm -D --defined-only '$module'`;
    is("@exported", 'et_device_module', 'a device module exports its table and nothing else');
}
done_testing();
