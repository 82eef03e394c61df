"""Listening tests by the ABX method: people tell which of A and B is X.

protocol  the rule, written before anybody listens
plan      the pairs, at one loudness, and what is heard in which trial; knows nothing of files and pages
answers   one file for each listener, written answer by answer
session   plan and answers in a folder: who has heard what, and what it shows
result    what all of it shows, in words and a picture
panel     links for listeners, and what a page may be told; `page` is that page
view      the page in JupyterLab
"""

from kokoro_lab.lab.listening.plan import AbxTrial, ListeningPlan, PassagePair
from kokoro_lab.lab.listening.session import ListeningSession, open_session
