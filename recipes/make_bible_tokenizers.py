#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Made recipes/bible_bpe.json and recipes/bible_vocab.txt, with Hugging Face's tokenizers
0.23.3, from the text of Debian's bible-kjv:

    bible -f -p /usr/lib gen1:1-rev22:21 >bible.txt
    python3 recipes/make_bible_tokenizers.py bible.txt"""
import os
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from tokenizers.implementations import BertWordPieceTokenizer

here = os.path.dirname(__file__) or "."
with open(sys.argv[1], encoding="utf-8") as f:
    lines = f.read().split("\n")

bpe = Tokenizer(models.BPE())
bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
bpe.decoder = decoders.ByteLevel()
bpe.post_processor = processors.ByteLevel(trim_offsets=False)
bpe.train_from_iterator(lines, trainers.BpeTrainer(
    vocab_size=4096, special_tokens=["<|endoftext|>"],
    initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
bpe.save(os.path.join(here, "bible_bpe.json"), pretty=False)

wordpiece = BertWordPieceTokenizer(lowercase=True)
wordpiece.train_from_iterator(lines, vocab_size=4096, min_frequency=2)
wordpiece.save_model(here, "bible")
os.rename(os.path.join(here, "bible-vocab.txt"), os.path.join(here, "bible_vocab.txt"))
