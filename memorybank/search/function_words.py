"""Words that say how a sentence is built and nothing of what it is about: they find nothing by themselves.

In a bank of statements a question word is rare, so BM25 would take it for telling. Leaving these out of the query is
worth four points of nDCG@10 on LoCoMo (benchmarks/README.md). Folded as `memorybank.terms.words` folds.
"""

from __future__ import annotations

__all__ = ["FUNCTION_WORDS"]

_ENGLISH = """
a about am an and are as at be been being but by can could d did do does doing done for from had has have he her hers
him his how i if in into is it its ll m may me might must my no not of on or our re s she should so t that the their
them there these they this those to us ve was we were what when where which who whom whose why will with would you your
"""
_ITALIAN = """
a ad ai agli al alla alle allo anche c che chi ci come con cosa cui d da dai dal dalla dalle dallo degli dei del della
delle dello di dove e ed era erano gli ha hanno ho i il in io l la le lei lo loro lui m ma mi mia mio ne nei nel nella
nelle nello noi non o per perche piu quale quali quando quella quelle quelli quello questa queste questi questo s se
sei si sono sta su sua sue sui sul sulla suo suoi t ti tra tu tua tuo un una uno v vi voi
"""
_TURKISH = """
acaba ama ben bana beni benim bir biri biz bize bizi bizim bu bunu bunun cok da daha de degil diye en fakat gibi hangi
hem hep icin ile ise kadar ki kim kime kimi mi mu nasil ne neden nedir nerede neresi nereye niye o olan olarak ona onlar
onu onun sana sen seni senin siz size sizi sizin su sunu var ve veya ya yani yok
"""
_GERMAN = """
aber als am an auch auf aus bei bin bis bist da das dass dein dem den der des dich die dir doch du durch ein eine einem
einen einer er es fur habe haben hat hatte ich ihm ihn ihr ihre im in ins ist ja kann mein mich mir mit nach nicht noch
nun nur ob oder sein seine sich sie sind so um und uns unser vom von vor war waren warum was wem wen wenn wer werden wie
wir wird wo zu zum zur
"""
_FRENCH = """
au aux avec ce ces cette c comme d dans de des du elle elles en est et etait etaient eux il ils j je l la le les leur
lui m ma mais me mes moi mon n ne nos notre nous on ont ou par pas pour pourquoi qu quand que quel quelle quelles quels
qui quoi s sa se ses son sont sur t ta te tes toi ton tu un une vos votre vous y
"""
_SPANISH = """
a al como con cual cuando cuyo de del donde e el ella ellas ellos en era eran es esa ese eso esta estaba estan este esto
fue ha han hay la las le les lo los mas me mi mis muy ni no nos nosotros o para pero por porque que quien quienes se ser
si sin sobre su sus te tu tus un una uno unos y ya yo
"""

FUNCTION_WORDS = frozenset(" ".join([_ENGLISH, _ITALIAN, _TURKISH, _GERMAN, _FRENCH, _SPANISH]).split())
"""Of English, Italian, Turkish, German, French and Spanish. Other languages lose nothing: theirs count as words."""
