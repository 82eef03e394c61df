"""Listening tests by the ABX method: people tell which of A and B is X.

protocol  the rule by which the answers are judged, written before anybody listens
plan      the pairs of sounds, at one loudness, and the order of the trials
answers   one file for each listener, written answer by answer
session   a test in a folder: its sounds, a listener's next trial, the result so far
result    the result of all listeners in sentences, a table and a picture
panel     a secret link for each listener, and the answers to the requests of the listeners' page (`page`)
view      that page in JupyterLab
"""

from kokoro_lab.lab.listening.plan import AbxTrial, ListeningPlan, PassagePair
from kokoro_lab.lab.listening.session import ListeningSession, open_session, open_with_rule
